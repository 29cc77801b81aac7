/** Parsers for the text of settings; each throws an `Error` whose text continues after the name: "must be …". */

import { isIP, isIPv4, isIPv6 } from 'node:net'
import { resolve } from 'node:path'
import { domainToASCII } from 'node:url'
import { type TsigAlgorithm, tsigAlgorithms } from '../../lib/dns/tsig.ts'
import { readCidr } from '../../lib/net/cidr.ts'
import type { OutboundAllowed } from '../../lib/net/outbound-rules.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { autoWorkers, MAX_WORKERS } from './auto-workers.ts'

export interface Listen {
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
}

interface PortRange {
  readonly from: number
  readonly to: number
}

const MAX_PORT = 65535

/** The longest duration, a day, in milliseconds. Timers overflow at 24 days. */
const MAX_DURATION_MS = 24 * 60 * 60 * 1000

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** `host:port` or `[ipv6]:port`. */
export function listen(text: string): Listen {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+)$/.exec(text) ?? []
  const valid = bracketed === undefined ? plain !== undefined && isHost(plain) : isIPv6(bracketed)
  const number = portNumber(digits)
  if (!valid || number === undefined) throw new Error('must be an address and a port: `host:port` or `[ipv6]:port`')
  return { host: bracketed ?? plain ?? '', port: number }
}

/** `host:port`, or `off`. */
export function listenOrOff(text: string): Listen | 'off' {
  if (text === 'off') return text
  try {
    return listen(text)
  } catch {
    throw new Error('must be an address and a port, `host:port` or `[ipv6]:port`, or `off`')
  }
}

/** `host:port` that is announced to others, so the port must be known. */
export function address(text: string): Listen {
  const parsed = listen(text)
  if (parsed.port === 0) throw new Error('must be an address and a port that others can reach')
  return parsed
}

/** An address or a name to listen on. */
export function host(text: string): string {
  if (!isHost(text) && !isIPv6(text)) throw new Error('must be an address such as `0.0.0.0`, or a name')
  return text
}

/** Names and addresses, separated by commas; none when empty. */
export function hosts(text: string): readonly string[] {
  const all = listed(text)
  if (!all.every((each) => isHost(each) || isIPv6(each))) {
    throw new Error('must be names or addresses, separated by commas')
  }
  return all.map((each) => each.toLowerCase())
}

/** Networks in CIDR form, separated by commas; none when empty. */
export function networks(text: string): readonly string[] {
  return listed(text).map((each) => {
    try {
      return readCidr(each).canonical
    } catch {
      throw new Error('must be networks such as `10.0.0.0/24`, separated by commas')
    }
  })
}

/** Networks, each with or without a port, and addresses and names with a port, separated by commas; none when empty. */
export function outboundAllowed(text: string): readonly OutboundAllowed[] {
  return listed(text).map((each) => {
    try {
      const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+)$/.exec(each) ?? []
      const where = bracketed ?? plain
      if (where === undefined || digits === undefined) return { network: readCidr(each).canonical }
      const number = port(digits)
      if (where.includes('/')) return { network: readCidr(where).canonical, port: number }
      const family = isIP(where)
      if (family !== 0) return { network: readCidr(`${where}/${family === 4 ? 32 : 128}`).canonical, port: number }
      return { name: domain(plain ?? ''), port: number }
    } catch {
      throw new Error(
        'must be networks such as `10.0.0.0/24`, or addresses or names with a port such as `127.0.0.1:9000`, separated by commas',
      )
    }
  })
}

/** Addresses of DNS servers, each with or without a port, separated by commas; none when empty. */
export function dnsServers(text: string): readonly string[] {
  const all = listed(text)
  for (const each of all) {
    const [, bracketed, plain, digits = '53'] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/.exec(each) ?? []
    const isAddress = isIP(each) !== 0 || isIPv6(bracketed ?? '') || isIPv4(plain ?? '')
    if (!isAddress || !portNumber(digits))
      throw new Error('must be addresses, with or without a port, separated by commas')
  }
  return all
}

export function port(text: string): number {
  const number = portNumber(text)
  if (number === undefined || number === 0) throw new Error(`must be a port between 1 and ${MAX_PORT}`)
  return number
}

/** `from-to`, or one port. */
export function portRange(text: string): PortRange {
  const [, first = '', last = first] = /^(\d+)(?:-(\d+))?$/.exec(text) ?? []
  const from = portNumber(first)
  const to = portNumber(last)
  if (!from || !to || from > to) throw new Error(`must be ports \`from-to\`, each between 1 and ${MAX_PORT}`)
  return { from, to }
}

/** Milliseconds, from a number with a unit. */
export function duration(text: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,9})(ms|s|m|h)$/.exec(text) ?? []
  const ms = Number(digits) * (units[unit] ?? Number.NaN)
  if (!(ms <= MAX_DURATION_MS)) throw new Error('must be a number with a unit (`ms`, `s`, `m`, `h`), at most `24h`')
  return ms
}

/** Bytes, from a number with a unit. */
export function size(text: string): number {
  const [, digits = '', unit = ''] = /^([1-9]\d{0,5})(KiB|MiB|GiB)$/.exec(text) ?? []
  const bytes = Number(digits) * (sizes[unit] ?? Number.NaN)
  if (!(bytes <= MAX_SIZE_BYTES)) throw new Error('must be a number with a unit (`KiB`, `MiB`, `GiB`), at most `64GiB`')
  return bytes
}

const sizes: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }
const MAX_SIZE_BYTES = 64 * 1024 ** 3

export function count(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error('must be a whole number, 0 or more')
  return Number(text)
}

export function countBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(number >= least && number <= most)) throw new Error(`must be a whole number from ${least} to ${most}`)
    return number
  }
}

export function workers(text: string): number {
  if (text === 'auto') return autoWorkers()
  const number = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN
  if (!(number <= MAX_WORKERS)) throw new Error(`must be \`auto\` or a whole number from 0 to ${MAX_WORKERS}`)
  return number
}

/** A duration between `least` and `most`, which are written like `1s` and `5m`. */
export function durationBetween(least: string, most: string): (text: string) => number {
  return (text) => {
    const ms = duration(text)
    if (ms < duration(least) || ms > duration(most)) throw new Error(`must be between \`${least}\` and \`${most}\``)
    return ms
  }
}

export function oneOf<const T extends string>(allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const found = allowed.find((each) => each === text)
    if (found === undefined) throw new Error(`must be one of ${allowed.map((each) => `\`${each}\``).join(', ')}`)
    return found
  }
}

/** Whether it is `on`. */
export function onOff(text: string): boolean {
  return oneOf(['on', 'off'])(text) === 'on'
}

/** An absolute path. */
export function path(text: string, cwd = '.'): string {
  if (text === '' || text.includes('\0')) throw new Error('must be a path')
  if (/^~(\/|$)/.test(text)) throw new Error('must be a full path; only shells understand `~`')
  return resolve(cwd, text)
}

/** A base URL; a slash at its end is dropped. */
export function baseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const web = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (!url || !web || url.search || url.hash || url.username || url.password) {
    throw new Error('must be an `http://` or `https://` URL without user, query or fragment')
  }
  return url.href.replace(/\/+$/, '')
}

/** `sqlite:<absolute path>`, `sqlite::memory:` or `postgres://…`. */
export function databaseUrl(text: string, cwd = '.'): string {
  const [, file] = /^sqlite:([^\0]+)$/.exec(text) ?? []
  if (file !== undefined) return file === ':memory:' ? text : `sqlite:${resolve(cwd, file)}`
  if (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text)) return text
  throw new Error('must be `sqlite:<path>` or `postgres://<user>@<host>/<database>`')
}

/** A domain name in the form of the DNS: lower case, punycode, no dot at the end. */
export function domain(text: string): string {
  const name = domainToASCII(text.replace(/\.$/, ''))
  if (!isHost(name) || isIP(name) !== 0) throw new Error('must be a domain name, without scheme or port')
  return name
}

/** Text of this form, unchanged. */
function matching(form: RegExp, fault: string): (text: string) => string {
  return (text) => {
    if (!form.test(text)) throw new Error(fault)
    return text
  }
}

export const region = matching(/^[a-z0-9][a-z0-9-]{0,31}$/, 'must be at most 32 lower-case letters, digits and hyphens')

export const nodeName = matching(
  /^[A-Za-z0-9._-]{1,63}$/,
  'must be 1 to 63 letters, digits, dots, hyphens and underscores',
)

/** A token that an operator chooses; error messages do not repeat it. */
export function presetToken(text: string): Secret {
  if (!/^[A-Za-z0-9_]+$/.test(text)) throw new Error('must have only the characters A-Z a-z 0-9 _')
  if (text.length < 32) throw new Error('must be 32 characters or more')
  return new Secret(text)
}

/** Directories that have a name of their own. */
const acmeDirectories: Readonly<Record<string, string>> = {
  letsencrypt: 'https://acme-v02.api.letsencrypt.org/directory',
  'letsencrypt-staging': 'https://acme-staging-v02.api.letsencrypt.org/directory',
  zerossl: 'https://acme.zerossl.com/v2/DV90',
}

/** The URL of an ACME directory, given by name or as a URL; empty when there is none. */
export function acmeDirectory(text: string): string {
  if (text === '') return ''
  const url = URL.parse(acmeDirectories[text] ?? text)
  const isLocal = url?.protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname)
  if (!url || !(url.protocol === 'https:' || isLocal) || url.username !== '' || url.password !== '') {
    throw new Error(`must be ${Object.keys(acmeDirectories).join(', ')} or an https URL`)
  }
  return url.href
}

export const email = matching(/^([^\s@<>,;:"]{1,64}@[^\s@<>,;:"]{1,255})?$/, 'must be an email address')

/** The id of a key, as its issuer wrote it. */
export const keyId = matching(/^[\x21-\x7e]{0,255}$/, 'must have at most 255 characters and no spaces')

/** A key for HMAC in base64 or base64url; error messages do not repeat it. */
export function macKey(text: string): Secret {
  if (!/^[A-Za-z0-9_+/-]{16,1024}={0,2}$/.test(text))
    throw new Error('must be a key in base64url, of 16 characters or more')
  return new Secret(text)
}

const DNS_PORT = 53

/** A DNS server: `host`, `host:port` or `[ipv6]:port`. */
export function dnsServer(text: string): Listen {
  if (isHost(text) || isIPv6(text)) return { host: text, port: DNS_PORT }
  return address(text)
}

/** A key that DNS messages are signed with. */
interface DnsKey {
  readonly name: string
  readonly algorithm: TsigAlgorithm
  /** In base64. */
  readonly secret: Secret
}

/** As `nsupdate -y` takes it; error messages do not repeat it. */
export function dnsKey(text: string): DnsKey {
  const [secret = '', name = '', algorithm = tsigAlgorithms[0], ...more] = text.split(':').toReversed()
  const known = tsigAlgorithms.find((each) => each === algorithm.toLowerCase())
  if (known === undefined || more.length > 0) {
    throw new Error(`must be \`algorithm:name:secret\`, with an algorithm of ${tsigAlgorithms.join(', ')}`)
  }
  if (!isHost(name.replace(/\.$/, ''))) throw new Error('must have the name of the key, as the DNS server knows it')
  if (!/^[A-Za-z0-9+/]{16,1024}={0,2}$/.test(secret)) {
    throw new Error('must have a secret in base64, of 16 characters or more')
  }
  return { name: name.replace(/\.$/, '').toLowerCase(), algorithm: known, secret: new Secret(secret) }
}

/** What commas separate; nothing when empty. */
function listed(text: string): readonly string[] {
  return text.trim() === '' ? [] : text.split(',').map((each) => each.trim())
}

/** A name or an IPv4 address. Text that ends in a number must be an address, so `010.1.1.1` and `1.2` are refused. */
function isHost(host: string): boolean {
  if (/(^|\.)\d+$/.test(host)) return isIPv4(host)
  const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
  return host.length <= 253 && new RegExp(`^${label}(?:\\.${label})*$`, 'i').test(host)
}

function portNumber(digits: string): number | undefined {
  const number = /^(0|[1-9]\d{0,4})$/.test(digits) ? Number(digits) : Number.NaN
  return number <= MAX_PORT ? number : undefined
}
