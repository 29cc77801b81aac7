/** Waits for an edge to be compiled: visitors of one edge, or of one source, keep no others from waiting. */
import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { CompileWait } from '../../../src/data-plane/edge/wait-for-compile.ts'
import { shared } from '../../../src/model/shared.ts'

const { most } = shared.compileWaits
/** Visitors of others: less than a quarter. */
const WORKING = 200

const held = new CompileWait()
const { promise: compiled, resolve: compile } = Promise.withResolvers<void>()
const letIn = new Set<Socket>()

/** Connections that wait, without those that were refused. */
function come(count: number, edgeId: string, ipOf: (i: number) => string): Socket[] {
  return Array.from({ length: count }, (_, i) => {
    const socket = new Socket()
    return held.hold(socket, compiled, () => letIn.add(socket), { edgeId, ip: ipOf(i) }) ? socket : undefined
  }).filter((socket) => socket !== undefined)
}

const cut = (sockets: readonly Socket[]) => sockets.filter(({ destroyed }) => destroyed).length
const ofMany = (i: number) => `192.0.2.${i}`

test('an edge with as many as can wait makes room for others, and a source at an edge for other sources', async () => {
  const atEdge = come(most, 'edghts_attacked', ofMany)
  assert.equal(atEdge.length, most)
  assert.equal(come(1, 'edghts_attacked', () => '192.0.2.1').length, 0, 'no more of the same')

  const working = come(WORKING, 'edghts_other', ofMany)
  assert.deepEqual([working.length, cut(atEdge)], [WORKING, WORKING])

  // Then one network comes to the other edge as well.
  const ofSource = come(most, 'edghts_other', (i) => `2001:db8::${i.toString(16)}`)
  assert.ok(ofSource.length < most)
  const late = come(10, 'edghts_other', (i) => `198.51.100.${i}`)
  assert.deepEqual([late.length, cut(working), cut(ofSource)], [10, 0, 10])
  assert.equal(come(1, '', ofMany).length, 1, 'a name that is looked up')

  compile()
  await compiled
  await new Promise(setImmediate)
  assert.ok([...working, ...late].every((socket) => letIn.has(socket)))
  assert.ok([...atEdge, ...ofSource].every((socket) => letIn.has(socket) !== socket.destroyed))
})
