/** Hostports: where an edge listens, as `host:port`. */

import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { BadInput } from '../lib/shape/bad-input.ts'

export interface Hostport {
  /** Normalised for comparison: lower case, without a trailing dot, in punycode. */
  readonly host: string
  readonly port: number
}

const MAX_NAME = 253
/** RFC 1035 §2.3.1, also beginning with a digit (RFC 1123 §2.1); `--` at the third character is for punycode only. */
const LABEL = /^(?!..--)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$|^xn--[a-z0-9-]{0,58}[a-z0-9]$/
/** ASCII characters that no name has; `*` is checked later, with its own message. */
const NOT_IN_NAMES = /[^a-z0-9.*\-\u0080-\u{10ffff}]/u

/** Reads `host:port` or `[address]:port`; throws an error whose message can be shown. */
export function readHostport(text: string): Hostport {
  const match = /^(\[[^\]]*\]|[^:]*):([^:]*)$/.exec(text)
  const [, host = '', port = ''] = match ?? []
  if (!match || host === '' || port === '') throw new BadInput('must have the form `host:port`')
  if (!/^[1-9][0-9]{0,4}$/.test(port) || Number(port) > 65_535)
    throw new BadInput('must have a port between 1 and 65535')
  if (host.startsWith('[')) {
    const address = host.slice(1, -1)
    // `isIP` accepts a zone, as in `fe80::1%eth0`, which has a meaning on one machine only.
    if (isIP(address) !== 6 || address.includes('%')) throw new BadInput('must have an IPv6 address inside `[` and `]`')
    return { host: host.toLowerCase(), port: Number(port) }
  }
  return { host: readName(host), port: Number(port) }
}

/** Reads a domain name, which may begin with `*.`, or an IPv4 address; throws an error whose message can be shown. */
export function readName(text: string): string {
  const plain = text.toLowerCase().replace(/\.$/, '')
  const isWildcard = plain.startsWith('*.')
  const rest = isWildcard ? plain.slice(2) : plain
  // Before domainToASCII, which stops at `/` and drops line breaks.
  if (NOT_IN_NAMES.test(rest)) throw badLabel()
  // Names in other scripts become punycode. ASCII is left alone, because domainToASCII would read `1.2` as an address.
  const name = /^[\x21-\x7e]*$/.test(rest) ? rest : domainToASCII(rest)
  if (name === '' || name.length + (isWildcard ? 2 : 0) > MAX_NAME) {
    throw new BadInput(`must have a host name of 1 to ${MAX_NAME} characters`)
  }
  if (name.includes('*')) throw new BadInput('may have `*` only as the whole first label, as in `*.example.com`')
  for (const label of name.split('.')) {
    if (!LABEL.test(label)) throw badLabel()
  }
  if (isWildcard && isIP(name)) throw new BadInput('cannot put `*` before an address')
  return isWildcard ? `*.${name}` : name
}

/** Normalises names as certificates spell them; leaves out what is not a name. */
export function readNames(texts: readonly string[]): string[] {
  return texts.flatMap((text) => {
    try {
      return [readName(text)]
    } catch {
      return []
    }
  })
}

function badLabel(): Error {
  return new BadInput('must have a host name of letters, digits and `-` in labels of at most 63 characters')
}
