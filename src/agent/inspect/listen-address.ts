/** Where the inspector of an agent listens, as people write it. */
import { isIP } from 'node:net'
import type { OptionReader } from '../../link/options/option-reader.ts'

export interface InspectAddress {
  readonly host: string
  readonly port: number
  /** Whether this is the default address, without which an agent still starts. */
  readonly isDefault: boolean
}

/** False turns it off. */
export type InspectListen = InspectAddress | false

export const DEFAULT_INSPECT: InspectAddress = { host: '127.0.0.1', port: 4040, isDefault: true }

/** Throws an error whose message continues after the name of the setting. */
export function parseInspectListen(text: string): InspectListen {
  if (text === 'false') return false
  const [, host = '', digits = ''] = /^(?:(\[[^\]]+\]|[a-z0-9.-]*):)?(\d{1,5})$/i.exec(text) ?? []
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  const isHost = bare === host || isIP(bare) === 6
  if (digits === '' || !isHost || Number(digits) > 65535) {
    throw new Error('must be an address such as `127.0.0.1:4040`, or `false`')
  }
  return { host: bare === '' || bare === 'localhost' ? '127.0.0.1' : bare, port: Number(digits), isDefault: false }
}

/** The same from a file, where YAML parses `false` as a boolean. */
export function readInspectListen(reader: OptionReader, key: string): InspectListen | undefined {
  return reader.given(key) === false ? false : reader.parsed(key, parseInspectListen)
}

/** Whether only this machine can reach it. */
export function isLoopback({ host }: InspectAddress): boolean {
  return host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}
