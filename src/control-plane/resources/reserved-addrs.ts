/** Reserved addresses: TCP ports that the server chooses and keeps for the account. */
import { randomInt } from 'node:crypto'
import { Type } from '../../lib/shape/type.ts'
import { Refusal } from '../../model/errors.ts'
import { EDGE_PORTS } from './hostports.ts'
import { checkRegion, region } from './regions.ts'
import { type IsFree, type Surroundings, storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

/** The scope of claims for the ports of reserved addresses. */
export const RESERVED_PORTS = 'reserved_port'

/** The size of the default range. In a wider range, this many misses in a row mean that it is nearly full. */
const MAX_TRIES = 1000

interface Kept extends Readonly<Record<string, unknown>> {
  readonly description: string
  readonly metadata: string
  readonly region: string
  /** `addr` and `port` are set by `choose`, which runs after `settle`. */
  readonly addr?: string
  readonly port?: number
}

const form = { description, metadata, region }

export const reservedAddrs = storedKind<typeof form, Kept>({
  kind: 'reserved_addr',
  noun: 'reserved address',
  about: 'TCP ports that the server chooses and keeps for you; a TCP edge may listen there.',
  prefix: 'ra_',
  access: 'account',
  form,
  fixed: ['region'],
  shows: {
    region: Type.String({ description: 'Where the address is served from.' }),
    addr: Type.String({ description: 'The address, as `host:port`.' }),
  },
  settle: (fields, around) => ({ ...fields, region: checkRegion(fields.region, around) }),
  async choose(fields, around, isFree) {
    const port = await freePort(around, isFree)
    return { ...fields, port, addr: `${hostOf(around)}:${port}` }
  },
  claims: ({ port, addr }) => [
    {
      scope: RESERVED_PORTS,
      key: String(port),
      taken: { code: 'CONFLICT', msg: `\`${addr}\` was reserved at the same moment; try again` },
    },
  ],
})

/** `tcp.<domain>`, or `<region>.tcp.<domain>` when the operator named a region. */
function hostOf({ domain, region }: Surroundings): string {
  return region === 'local' ? `tcp.${domain}` : `${region}.tcp.${domain}`
}

/** A random port that no edge and no other reservation holds; consecutive ports would be easy to guess. */
async function freePort({ tcpPorts: { from, to } }: Surroundings, isFree: IsFree): Promise<number> {
  const ports = Array.from({ length: to - from + 1 }, (_, i) => from + i)
  const count = ports.length
  for (let tries = 0; tries < MAX_TRIES && ports.length > 0; tries++) {
    const at = randomInt(ports.length)
    const port = ports[at] ?? from
    const last = ports.pop() ?? port
    // Removes the drawn port by moving the last one into its place.
    if (at < ports.length) ports[at] = last
    const key = String(port)
    if ((await isFree(RESERVED_PORTS, key)) && (await isFree(EDGE_PORTS, key))) return port
  }
  const found =
    ports.length === 0
      ? `all TCP ports between ${from} and ${to} are taken`
      : `nearly all TCP ports between ${from} and ${to} are taken: ${MAX_TRIES} of the ${count} were tried at random, and none is free`
  throw new Refusal('NO_FREE_PORT', `${found}; delete a reserved address or a TCP edge, or widen \`--tcp-ports\``)
}
