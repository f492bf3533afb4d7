"""An assistant: the SDK's own client, which asks a server that runs."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

Said = TypeVar("Said")


def talk(url: str, token: str, conversation: Callable[[ClientSession], Awaitable[Said]]) -> Said:
    """Return what a conversation comes to, in a session that is initialized."""

    async def whole() -> Said:
        async with (
            httpx2.AsyncClient(headers=_login(token), trust_env=False, timeout=20) as http,
            streamable_http_client(url, http_client=http) as (reads, writes),
            ClientSession(reads, writes) as session,
        ):
            await session.initialize()
            return await conversation(session)

    return anyio.run(whole)


def _login(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}
