"""The receive engine's part of a dialogue with the session table, for tests."""

__all__ = ["look_up"]


async def look_up(ctx, table, key, insert=False):
    """A dialogue with a session table, to its end: whether ``key`` is there, its session, and the
    number under which it was entered, or None."""
    ctx.set(table.tuple, key)
    while not ctx.get(table.idle):
        await ctx.tick()
    ctx.set(table.start, 1)
    await ctx.tick()
    ctx.set(table.start, 0)
    while not ctx.get(table.done):
        await ctx.tick()
    found, session = ctx.get(table.found), ctx.get(table.session)
    enter = insert and not found and ctx.get(table.free_valid)
    number = ctx.get(table.free_session)
    ctx.set(table.finish, 1)
    ctx.set(table.insert, enter)
    await ctx.tick()
    ctx.set(table.finish, 0)
    return found, session, number if enter else None
