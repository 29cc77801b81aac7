/** Connections before the edges are loaded: those of one source make room for others, who are let in. */
import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { waitForLoad } from '../../../src/data-plane/edge/wait-for-load.ts'
import { meetVisitors } from '../../../src/lib/net/trusted-hop.ts'
import { shared } from '../../../src/model/shared.ts'

const VISITORS = 50

test('a flood of early connections keeps nobody else from waiting', () => {
  const held = waitForLoad(meetVisitors([]))
  const letIn = new Set<string>()
  const come = (ip: string): void => {
    const peer = { ip, port: 1, serverIp: '192.0.2.200', serverPort: 443, startedAt: 0 }
    held.meet(new Socket(), peer, (visitor) => void (visitor && letIn.add(visitor.ip)))
  }
  const flood = (): void => {
    for (let i = 0; i < shared.earlyConnections.most; i++) come(`2001:db8::${i.toString(16)}`)
  }
  flood()
  const visitors = Array.from({ length: VISITORS }, (_, i) => `192.0.2.${i}`)
  for (const ip of visitors) come(ip)
  flood()
  assert.equal(letIn.size, 0)
  held.letIn()
  assert.deepEqual(
    visitors.filter((ip) => !letIn.has(ip)),
    [],
  )
})
