/** A directory of what simulated nodes have online, written in bulk. */
import { randomBytes } from 'node:crypto'
import { addressContext } from '../../src/control-plane/cluster/write-online-rows.ts'
import { endpointTunnel, onlineSession, servedAt } from '../../src/control-plane/directory/testing/test-online.ts'
import { openStore, type Store } from '../../src/control-plane/store/store.ts'
import { nodeAt } from '../../src/control-plane/store/testing/test-online-rows.ts'
import { Sealer } from '../../src/lib/secrets/seal.ts'
import { execute } from './database.ts'

/** Nodes that tunnels are spread over. */
export const NODES = 10

/** Longer than any run, in milliseconds. */
const LEASE_MS = 24 * 3600 * 1000

export const sealer = new Sealer(randomBytes(32))

/** Tunnels `from` to `to`, exclusive, of one node or spread over all; each has its own session and name. */
export interface Range {
  readonly from: number
  readonly to: number
  readonly nodeId?: string
}

export interface FilledStore {
  readonly store: Store
  readonly url: string
  readonly tunnels: number
  readonly add: (range: Range) => Promise<void>
  /** Seals these names as their nodes would, so that they can be read. */
  seal(numbers: readonly number[]): Promise<void>
  readonly close: () => Promise<void>
}

export async function fillStore(url: string, tunnels: number): Promise<FilledStore> {
  const store = await openStore(url)
  for (let i = 0; i < NODES; i++) await store.write(({ online }) => online.renew(nodeAt(`nd_${i}`), LEASE_MS))
  const add = (range: Range): Promise<void> => execute(url, statements(range))
  await add({ from: 0, to: tunnels })
  return {
    ...{ store, url, tunnels, add },
    async seal(numbers) {
      const addresses = numbers.map((number) => {
        const place = placeOf(number)
        const config = sealer.seal(
          JSON.stringify(servedAt(`tn_${padded(number)}`, nameOf(number))),
          addressContext(place),
        )
        return { place, ownerId: '', isPooled: false, digest: '', isUnnamed: true, port: null, config }
      })
      await store.write(({ online }) => online.setAddresses(addresses))
      // Brings rows written in bulk into the state that they have on a server that has run for long.
      await execute(url, ['vacuum analyze', 'checkpoint'])
    },
    close: () => store.close(),
  }
}

export function placeOf(number: number): string {
  return `secure:${nameOf(number)}`
}

function nameOf(number: number): string {
  return `n${padded(number)}.example.com`
}

function padded(number: number): string {
  return String(number).padStart(9, '0')
}

/** Rows of the same size as those that nodes write. */
function statements({ from, to, nodeId }: Range): string[] {
  const rows = `generate_series(${from}, ${to - 1}) as i`
  const node = nodeId === undefined ? `'nd_' || (i % ${NODES})` : `'${nodeId}'`
  const key = `lpad(i::text, 9, '0')`
  const [tunnel, session, place] = [`'tn_' || ${key}`, `'ts_' || ${key}`, `'secure:n' || ${key} || '.example.com'`]
  const config = sealer.seal(JSON.stringify(servedAt(`tn_${padded(0)}`, nameOf(0))), addressContext(placeOf(0)))
  const kept = JSON.stringify(endpointTunnel(`tn_${padded(0)}`, `ts_${padded(0)}`, nameOf(0)))
  const shown = JSON.stringify(onlineSession(`ts_${padded(0)}`).session)
  return [
    `insert into online_sessions (id, node_id, plane_id, credential_id, certificate_id, fields)
      select ${session}, ${node}, 'w1', 'cr_1', null, '${shown}' from ${rows}`,
    `insert into online_tunnels (id, node_id, plane_id, session_id, endpoint_id, fields)
      select ${tunnel}, ${node}, 'w1', ${session}, 'ep_' || ${key}, '${kept}' from ${rows}`,
    `insert into places (place, owner_id, is_pooled, digest, is_unnamed, port, config)
      select ${place}, '', 0, '', 1, null, '${config}' from ${rows}`,
    `insert into place_holders (place, slot, tunnel_id, session_id, node_id, plane_id, version)
      select ${place}, '', ${tunnel}, ${session}, ${node}, 'w1', '1' from ${rows}`,
  ]
}
