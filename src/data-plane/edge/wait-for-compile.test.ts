import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { socketPair } from '../../../test/support/socket-pair.ts'
import { CompileWait } from './wait-for-compile.ts'

const IP = '192.0.2.7'

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
  new CompileWait().hold(here, IP, promise, () => letIn.resolve())
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
  new CompileWait().hold(here, IP, promise, () => {
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
    (here) => new CompileWait({ holdMs: 1 }).hold(here, IP, never, () => {}),
    (here) => new CompileWait().hold(here, IP, Promise.reject(new Error('broken')), () => {}),
    (here) => {
      const held = new CompileWait()
      held.hold(here, IP, never, () => {})
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

test('when too many wait, the oldest of the source with most is closed, and no other', async (t) => {
  const held = new CompileWait({ maxHeld: 4 })
  const ready = Promise.withResolvers<void>()
  const isIn: string[] = []
  const hostile = await Promise.all([1, 2, 3, 4].map(() => visitor(t)))
  for (const [i, { here }] of hostile.entries())
    held.hold(here, '192.0.2.66', ready.promise, () => isIn.push(`hostile ${i}`))
  const closed = once(hostile[0]?.here as Socket, 'close') // there are four
  const calm = await visitor(t)
  held.hold(calm.here, IP, ready.promise, () => isIn.push('calm'))
  await closed
  ready.resolve()
  await ready.promise
  assert.deepEqual(isIn, ['hostile 1', 'hostile 2', 'hostile 3', 'calm'])
})
