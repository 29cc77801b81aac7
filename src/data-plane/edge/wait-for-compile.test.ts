import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { socketPair } from '../../../test/support/socket-pair.ts'
import { CompileWait } from './wait-for-compile.ts'

async function visitor(t: TestContext): Promise<{ here: Socket; there: Socket }> {
  const { accepted: here, connected: there } = await socketPair({ tls: false })
  t.after(() => {
    here.destroy()
    there.destroy()
  })
  return { here, there }
}

test('a visitor is let in once the edge is compiled, with all that was sent before', async (t) => {
  const { here, there } = await visitor(t)
  const { promise, resolve } = Promise.withResolvers<void>()
  const letIn = Promise.withResolvers<void>()
  assert.ok(new CompileWait().hold(here, promise, () => letIn.resolve()))
  there.write('early')
  resolve()
  await letIn.promise
  const [data] = (await once(here, 'data')) as [Buffer]
  assert.equal(data.toString(), 'early')
})

test('a visitor that has left is not let in', async (t) => {
  const { here } = await visitor(t)
  const { promise, resolve } = Promise.withResolvers<void>()
  let isIn = false
  new CompileWait().hold(here, promise, () => {
    isIn = true
  })
  const closed = once(here, 'close')
  here.destroy()
  await closed
  resolve()
  await promise
  assert.equal(isIn, false)
})

test('a visitor is closed when the edge is late or cannot be compiled, or the server stops', async (t) => {
  const never = new Promise<void>(() => {})
  const ends: ((here: Socket) => void)[] = [
    (here) => new CompileWait({ holdMs: 1 }).hold(here, never, () => {}),
    (here) => new CompileWait().hold(here, Promise.reject(new Error('broken')), () => {}),
    (here) => {
      const held = new CompileWait()
      held.hold(here, never, () => {})
      held.cut()
    },
  ]
  for (const end of ends) {
    const { here } = await visitor(t)
    const closed = once(here, 'close')
    end(here)
    await closed
  }
})

test('only a bounded number wait', async (t) => {
  const held = new CompileWait({ maxHeld: 1 })
  const never = new Promise<void>(() => {})
  const [first, second] = [await visitor(t), await visitor(t)]
  assert.equal(
    held.hold(first.here, never, () => {}),
    true,
  )
  assert.equal(
    held.hold(second.here, never, () => {}),
    false,
  )
  const closed = once(first.here, 'close')
  first.here.destroy()
  await closed
  assert.equal(
    held.hold(second.here, never, () => {}),
    true,
  )
})
