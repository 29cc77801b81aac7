/** The address at which a server accepts agents, as people write it. */
import { isIPv6 } from 'node:net'

/** The port when none is given. */
const DEFAULT_PORT = 7443

export const DEFAULT_SERVER = `localhost:${DEFAULT_PORT}`

export interface ServerAddress {
  readonly host: string
  readonly port: number
}

/** `host`, `host:port`, `[ipv6]:port`; throws an `Error` whose text continues the name of the setting: "must be …". */
export function parseServer(text: string): ServerAddress {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([a-z0-9_.-]{1,253}))(?::(\d{1,5}))?$/i.exec(text) ?? []
  const host = bracketed ?? plain
  const port = digits === undefined ? DEFAULT_PORT : Number(digits)
  const isHost = bracketed === undefined ? plain !== undefined : isIPv6(bracketed)
  if (host === undefined || !isHost || port < 1 || port > 65535) {
    throw new Error('must be `host:port` of the server, without a scheme')
  }
  return { host, port }
}

export function formatServer({ host, port }: ServerAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`
}
