export const Fragment: unknown;
export function h(type: unknown, props: unknown, ...children: unknown[]): unknown;
export function render(node: unknown, into: Element): void;
