/** Connections that wait for their edge: those of one source make room for others, which are let in. */
import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { CompileWait } from '../../../src/data-plane/edge/wait-for-compile.ts'
import { shared } from '../../../src/model/shared.ts'

const VISITORS = 50

test('a flood of connections that wait keeps nobody else from waiting', async (t) => {
  const held = new CompileWait()
  t.after(() => held.cut())
  const never = new Promise<void>(() => {})
  const ready = Promise.withResolvers<void>()
  let letIn = 0
  const flood = (from: number): void => {
    for (let i = 0; i < shared.heldConnections.most; i++) {
      held.hold(new Socket(), `2001:db8::${(from + i).toString(16)}`, never, () => assert.fail())
    }
  }
  flood(0)
  for (let i = 0; i < VISITORS; i++) held.hold(new Socket(), `192.0.2.${i}`, ready.promise, () => letIn++)
  flood(shared.heldConnections.most)
  ready.resolve()
  await ready.promise
  assert.equal(letIn, VISITORS)
})
