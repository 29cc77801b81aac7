/** The address of the service behind a tunnel, as people write it. */
import { isIPv6 } from 'node:net'
import { formatServer } from './server-address.ts'

export interface Upstream {
  /** As it is shown and sent to the server: `http://localhost:3000`, `localhost:22`, `unix:/run/app.sock`. */
  readonly url: string
  readonly at: { readonly host: string; readonly port: number } | { readonly path: string }
  /** The service expects TLS; traffic that is TLS already is not encrypted again. */
  readonly isTls: boolean
}

const forms =
  '`3000`, `host:3000`, `http://host:3000`, `https://host`, `tcp://host:22`, `tls://host:443` or `unix:/path`'

/** Ports that a scheme implies. */
const schemes: Readonly<Record<string, { isTls: boolean; port?: number }>> = {
  http: { isTls: false, port: 80 },
  https: { isTls: true, port: 443 },
  tcp: { isTls: false },
  tls: { isTls: true, port: 443 },
}

/** `scheme` is shown for an address that has none; throws an `Error` whose text continues the name of the setting: "must be …". */
export function parseUpstream(text: string, { scheme = '' }: { scheme?: 'http' | '' } = {}): Upstream {
  const [, socket] = /^unix:(?:\/\/)?(.+)$/.exec(text) ?? []
  if (socket !== undefined) return unixUpstream(socket)
  const [, named, rest = text] = /^([a-z]+):\/\/(.*)$/.exec(text) ?? []
  const known = named === undefined ? { isTls: false, ...(scheme && { port: 80 }) } : schemes[named]
  if (known === undefined) throw new Error(`must be an address such as ${forms}`)
  const [, address = '', path = ''] = /^([^/?#]*)(.*)$/s.exec(rest) ?? []
  if (path !== '' && path !== '/')
    throw new Error('must not have a path: the service gets the path that the visitor asked for')
  const { host, port } = hostPort(address, known.port)
  const shown = named ?? scheme
  return { url: `${shown && `${shown}://`}${formatServer({ host, port })}`, at: { host, port }, isTls: known.isTls }
}

function unixUpstream(path: string): Upstream {
  if (!path.startsWith('/') || path.includes('\0'))
    throw new Error('must be an absolute path, such as `unix:/run/app.sock`')
  return { url: `unix:${path}`, at: { path }, isTls: false }
}

function hostPort(text: string, fallback: number | undefined): { host: string; port: number } {
  const [, alone] = /^:?(\d{1,5})$/.exec(text) ?? []
  if (alone !== undefined) return { host: 'localhost', port: checkedPort(Number(alone)) }
  const [, name = '', digits] = /^(\[[^\]]+\]|[a-z0-9_.-]{1,253})(?::(\d{1,5}))?$/i.exec(text) ?? []
  const host = name.replace(/^\[(.*)\]$/, '$1')
  if (host === '' || (host !== name && !isIPv6(host))) throw new Error(`must be an address such as ${forms}`)
  const port = digits === undefined ? fallback : Number(digits)
  if (port === undefined) throw new Error('must name a port, as in `localhost:22`')
  return { host, port: checkedPort(port) }
}

function checkedPort(port: number): number {
  if (port < 1 || port > 65535) throw new Error('must have a port between 1 and 65535')
  return port
}
