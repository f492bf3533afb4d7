export function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export function useEffect(act: () => void | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(act: () => void | (() => void), inputs?: unknown[]): void;
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useRef<T>(first: T): { current: T };
export function useCallback<T extends Function>(act: T, inputs: unknown[]): T;
