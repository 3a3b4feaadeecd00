"""The receive engine's part of a dialogue with the session table, for tests."""

__all__ = ["look_up"]


async def look_up(ctx, table, key, insert=False):
    """A dialogue with a session table, to its end: whether ``key`` is there, its session, and the
    number under which it was entered, or None."""
    look = table.lookup
    ctx.set(look.tuple, key)
    while not ctx.get(look.ready):
        await ctx.tick()
    ctx.set(look.start, 1)
    await ctx.tick()
    ctx.set(look.start, 0)
    while not ctx.get(look.done):
        await ctx.tick()
    found, session = ctx.get(look.found), ctx.get(look.session)
    enter = insert and not found and ctx.get(look.free_valid)
    number = ctx.get(look.free_session)
    ctx.set(look.finish, 1)
    ctx.set(look.insert, enter)
    await ctx.tick()
    ctx.set(look.finish, 0)
    return found, session, number if enter else None
