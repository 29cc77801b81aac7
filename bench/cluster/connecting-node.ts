/**
 * One simulated node: agents connect to it as fast as the database takes them, each with its own session, tunnel and
 * name, through the code of a real node. Prints `ready`, begins when it gets a line, then prints the number as JSON.
 *
 * Arguments: a number for the node, seconds, and connects at the same time. The database's URL is in BENCH_DATABASE_URL.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { NodeLease } from '../../src/control-plane/cluster/node-lease.ts'
import { OnlineRows } from '../../src/control-plane/cluster/write-online-rows.ts'
import {
  endpointTunnel,
  onlineSession,
  testReservation,
} from '../../src/control-plane/directory/testing/test-online.ts'
import { openStore } from '../../src/control-plane/store/store.ts'
import { nodeAt } from '../../src/control-plane/store/testing/test-online-rows.ts'
import { createLog } from '../../src/lib/log/create-log.ts'
import { Sealer } from '../../src/lib/secrets/seal.ts'
import type { OnlineSession, OnlineTunnel, Reservation } from '../../src/link/planes/plane-calls.ts'

const [number = '', seconds = '', atOnce = ''] = process.argv.slice(2)
const nodeId = `nd_${number}`
const planeId = 'w1'
const store = await openStore(process.env.BENCH_DATABASE_URL ?? '')
const log = createLog({ level: 'warn', format: 'json', destination: process.stderr })

const sessions = new Map<string, OnlineSession>()
const tunnels = new Map<string, OnlineTunnel>()
const addresses = new Map<string, Reservation>()
const at = <T extends object>(found: T | undefined) => found && { planeId, ...found }

const rows = new OnlineRows({
  ...{ store, nodeId, log, sealer: new Sealer(randomBytes(32)) },
  held: {
    session: (id) => at(sessions.get(id)),
    tunnel: (id) => {
      const online = tunnels.get(id)
      return online && { planeId, online }
    },
    addresses: (place) => {
      const held = at(addresses.get(place))
      return held ? [held] : []
    },
    tunnelsOf: () => [],
  },
  onLeaseLost: () => fail('its lease has expired'),
  isShaken: () => false,
  areFree: () => fail('another node lost its lease'),
  onAddressTaken: () => fail('another node took one of its names'),
  onSessionTaken: () => fail('another node took one of its sessions'),
})
const lease = new NodeLease({
  ...{ store, log },
  facts: () => nodeAt(nodeId, { sessions: sessions.size }),
  onBegun() {},
  onNodes() {},
  isGone: () => false,
})
await lease.start()
console.log('ready')
await once(process.stdin, 'data')

const begun = performance.now()
const until = begun + Number(seconds) * 1000
const counts = await Promise.all(Array.from({ length: Number(atOnce) }, (_, i) => connectAll(i)))
await rows.written()
const amount = counts.reduce((sum, each) => sum + each, 0)
console.log(JSON.stringify({ amount, seconds: (performance.now() - begun) / 1000 }))
await rows.close()
await lease.pause()
await store.close()
process.exit(0)

async function connectAll(lane: number): Promise<number> {
  let count = 0
  for (; performance.now() < until; count++) {
    const key = `${number}_${lane}_${count}`
    const [sessionId, tunnelId, name] = [`ts_${key}`, `tn_${key}`, `n-${key}.example.com`]
    sessions.set(sessionId, onlineSession(sessionId))
    rows.sessionChanged(sessionId, { isNew: true })
    const reservation = testReservation(tunnelId, sessionId, name)
    // Like a real node, which records a name before it claims it: a name that is not recorded by then was given up.
    addresses.set(reservation.place, reservation)
    if (!(await rows.reserve({ ...reservation, planeId }))) return fail('a free name was refused')
    tunnels.set(tunnelId, endpointTunnel(tunnelId, sessionId, name))
    rows.tunnelChanged(tunnelId, { isNew: true })
  }
  return count
}

function fail(why: string): never {
  console.error(`node ${number}: ${why}`)
  process.exit(1)
}
