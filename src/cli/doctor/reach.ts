/** What `postern doctor` says about how the server is reached: its listeners, and whether the DNS leads to it. */
import { randomBytes, X509Certificate } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { reachable } from '../first-start.ts'
import { type Finding, toDo, unknown, well } from './finding.ts'

/** How long a connection may take, in milliseconds. */
const CONNECT_MS = 3000

export interface ReachedFrom {
  /** All addresses of a name; rejects when there are none. */
  readonly addressesOf: (name: string) => Promise<readonly string[]>
  /** Resolves when something accepts there. */
  readonly open: (host: string, port: number) => Promise<void>
  /** What tells apart the certificates that servers show for a name. */
  readonly certificateAt: (host: string, port: number, name: string) => Promise<string>
}

/** As this machine reaches them; `ca` is the authority of the server on it, in PEM. */
export function machineReach(ca: string | undefined): ReachedFrom {
  const authority = ca === undefined ? undefined : new X509Certificate(ca)
  return {
    addressesOf: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    open: (host, port) => opened(connect({ host, port }), 'connect').then((socket) => void socket.destroy()),
    async certificateAt(host, port, servername) {
      // Whoever it is may show any certificate: it is compared, and nothing is sent.
      const socket = await opened(connectTls({ host, port, servername, rejectUnauthorized: false }), 'secureConnect')
      const shown = socket.getPeerX509Certificate()
      socket.destroy()
      // Each worker makes its own of the server's authority.
      const isOwn = authority !== undefined && shown?.verify(authority.publicKey) === true
      return isOwn ? OWN_AUTHORITY : (shown?.fingerprint256 ?? '')
    },
  }
}

const OWN_AUTHORITY = "of the server's own authority"

/** `addresses` as `/readyz` tells them, by listener. */
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
      return toDo(`listener ${name}`, `${address} does not accept: ${textOf(error)}`, 'see the log of the server')
    }
  })
  return Promise.all(findings)
}

/** Whether the domain and the names below it lead to this server. `https`: its own listener, and the port for visitors. */
export async function checkDomain(
  domain: string,
  https: { readonly address: string; readonly publicPort: number },
  reach: ReachedFrom,
): Promise<Finding[]> {
  if (/(^|\.)localhost$/.test(domain)) {
    return [
      unknown(
        'DNS',
        `the domain is ${domain}, which leads to each machine itself`,
        'set --domain for visitors from elsewhere',
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
    return toDo(check, `no address: ${textOf(error)}`, `set an A or AAAA record of ${shown} that leads to this server`)
  }
  const own = splitAddress(reachable(https.address))
  try {
    const ours = await reach.certificateAt(own.host, own.port, name)
    for (const address of addresses) {
      const theirs = await reach.certificateAt(address, https.publicPort, name)
      if (theirs !== ours) {
        const next = `let ${shown} lead here, or forward port ${https.publicPort} to ${https.address}`
        return toDo(check, `${address}:${https.publicPort} shows a certificate that is not of this server`, next)
      }
    }
    return well(check, `${addresses.join(', ')} leads to this server on port ${https.publicPort}`)
  } catch (error) {
    const next = `open or forward port ${https.publicPort}; behind a router that hides this, try it from another machine`
    return toDo(check, `${addresses.join(', ')} cannot be reached on port ${https.publicPort}: ${textOf(error)}`, next)
  }
}

/** Splits `host:port`, where an IPv6 address has brackets. */
function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  return { host: isIP(host) === 0 ? host || '127.0.0.1' : host, port: Number(address.slice(colon + 1)) }
}

async function opened<S extends ReturnType<typeof connect>>(socket: S, event: string): Promise<S> {
  return new Promise((resolve, reject) => {
    const overdue = setTimeout(() => {
      socket.destroy()
      reject(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' }))
    }, CONNECT_MS)
    socket.once(event, () => {
      clearTimeout(overdue)
      resolve(socket)
    })
    socket.once('error', (error) => {
      clearTimeout(overdue)
      reject(error)
    })
  })
}

function textOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
