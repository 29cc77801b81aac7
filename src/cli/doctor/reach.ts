/** The checks of `postern doctor` for how the server is reached: its listeners, and whether DNS points to it. */
import { randomBytes, X509Certificate } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { errorCode } from '../../lib/error-code.ts'
import { inTime } from '../../lib/in-time.ts'
import { reachable } from '../print-first-start.ts'
import { type Finding, toDo, unknown, well } from './finding.ts'

/** How long a connection may take, in milliseconds. */
const CONNECT_MS = 3000

export interface ReachedFrom {
  /** All addresses of a name; rejects when there are none. */
  readonly addressesOf: (name: string) => Promise<readonly string[]>
  /** Resolves when a connection there is accepted. */
  readonly open: (host: string, port: number) => Promise<void>
  /** A value that identifies the certificate that a server shows for a name. */
  readonly certificateAt: (host: string, port: number, name: string) => Promise<string>
}

/** Connects from this machine; `ca` is the authority of the server on it, in PEM. */
export function machineReach(ca: string | undefined): ReachedFrom {
  const authority = ca === undefined ? undefined : new X509Certificate(ca)
  return {
    addressesOf: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    open: (host, port) => untilOpen(connect({ host, port }), 'connect').then((socket) => void socket.destroy()),
    async certificateAt(host, port, servername) {
      // Any certificate is accepted: it is only compared, and nothing is sent.
      const socket = await untilOpen(connectTls({ host, port, servername, rejectUnauthorized: false }), 'secureConnect')
      const shown = socket.getPeerX509Certificate()
      socket.destroy()
      // Each worker has its own certificate of the server's authority, so these count as the same.
      const isOwn = authority !== undefined && shown?.verify(authority.publicKey) === true
      return isOwn ? OWN_AUTHORITY : (shown?.fingerprint256 ?? '')
    },
  }
}

const OWN_AUTHORITY = "of the server's own authority"

/** `addresses` as `/readyz` reports them, by listener. */
export async function checkListeners(
  addresses: Readonly<Record<string, string>>,
  reach: ReachedFrom,
): Promise<Finding[]> {
  const findings = Object.entries(addresses).map(async ([name, address]) => {
    const { host, port } = splitAddress(reachable(address))
    try {
      await reach.open(host, port)
      return well(`listener ${name}`, `${address} accepts connections`)
    } catch (error) {
      return toDo(
        `listener ${name}`,
        `${address} does not accept connections: ${textOf(error)}`,
        'see the log of the server',
      )
    }
  })
  return Promise.all(findings)
}

/** Whether the domain and the names below it point to this server. `https`: its own listener, and the port for visitors. */
export async function checkDomain(
  domain: string,
  https: { readonly address: string; readonly publicPort: number },
  reach: ReachedFrom,
): Promise<Finding[]> {
  if (/(^|\.)localhost$/.test(domain)) {
    return [
      unknown(
        'DNS',
        `the domain is ${domain}, which every machine resolves to itself`,
        'set --domain to serve visitors on other machines',
      ),
    ]
  }
  const names = [domain, `doctor-${randomBytes(4).toString('hex')}.${domain}`]
  return Promise.all(names.map((name, i) => checkName(name, i === 0 ? domain : `*.${domain}`, https, reach)))
}

async function checkName(
  name: string,
  shown: string,
  https: { readonly address: string; readonly publicPort: number },
  reach: ReachedFrom,
): Promise<Finding> {
  const check = `DNS of ${shown}`
  let addresses: readonly string[]
  try {
    addresses = await reach.addressesOf(name)
  } catch (error) {
    return toDo(check, `no address: ${textOf(error)}`, `set an A or AAAA record of ${shown} that points to this server`)
  }
  const own = splitAddress(reachable(https.address))
  try {
    const ours = await reach.certificateAt(own.host, own.port, name)
    for (const address of addresses) {
      const theirs = await reach.certificateAt(address, https.publicPort, name)
      if (theirs !== ours) {
        const next = `point ${shown} to this server, or forward port ${https.publicPort} to ${https.address}`
        return toDo(check, `${address}:${https.publicPort} shows a certificate that is not this server's`, next)
      }
    }
    return well(check, `${addresses.join(', ')} reaches this server on port ${https.publicPort}`)
  } catch (error) {
    const next = `open or forward port ${https.publicPort}; if your router blocks connections to itself from inside, test from another machine`
    return toDo(check, `${addresses.join(', ')} cannot be reached on port ${https.publicPort}: ${textOf(error)}`, next)
  }
}

/** Splits `host:port`, where an IPv6 address has brackets. */
function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  return { host: isIP(host) === 0 ? host || '127.0.0.1' : host, port: Number(address.slice(colon + 1)) }
}

async function untilOpen<S extends ReturnType<typeof connect>>(socket: S, event: string): Promise<S> {
  const late = () => Object.assign(new Error('no response in time'), { code: 'ETIMEDOUT' })
  try {
    await inTime(once(socket, event), CONNECT_MS, late)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function textOf(error: unknown): string {
  return errorCode(error) ?? String(error)
}
