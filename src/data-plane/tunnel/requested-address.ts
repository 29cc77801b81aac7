/** The address that a bind asks for, read from the many places where agents put it. */
import { isIP } from 'node:net'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { requestedName } from '../../link/wire/messages/bind-options.ts'
import { refusals } from '../../model/agent-errors.ts'
import { readHostport, readName } from '../../model/hostport.ts'
import type { AgentTcpPorts } from './agent-tcp-ports.ts'
import { BindRefusal, type EndpointRequest } from './interfaces.ts'

type Proto = EndpointRequest['proto']

export interface Address {
  readonly host: string
  /** TCP only. */
  readonly port: number | undefined
}

/** What the server can serve; anything else is refused. */
export interface ServedAddresses {
  readonly domain: string
  readonly tcpPorts: AgentTcpPorts
  /** The ports shown in public URLs; asked at each bind, since a port may be known only after listening. */
  readonly publicPorts: () => { readonly http: number; readonly https: number }
}

const protos: readonly string[] = ['http', 'https', 'tcp', 'tls'] satisfies Proto[]

export function isProto(text: string): text is Proto {
  return protos.includes(text)
}

/** Undefined when the server may choose. */
export function requestedAddress(
  proto: Proto,
  opts: Readonly<Record<string, unknown>>,
  around: ServedAddresses,
): Address | BindRefusal | undefined {
  const asked = requestedName(proto, opts)
  if (!asked) return undefined
  if (asked.value.length > MAX_ASKED) return refusals.nameTooLong(asked.value, 'is too long')
  const address = readAddress(proto, asked, around)
  if (address instanceof BindRefusal) return asked.field === 'URL' ? ofUrl(address) : address
  if (address === undefined) return address
  // Agents use `.internal` for endpoints that are not public; a server whose own domain ends in it may serve such names.
  if (address.host.endsWith(INTERNAL) && !around.domain.endsWith(INTERNAL)) {
    return refusals.internalName(address.host)
  }
  return address
}

function readAddress(
  proto: Proto,
  asked: { readonly field: string; readonly value: string },
  around: ServedAddresses,
): Address | BindRefusal | undefined {
  if (asked.field === 'Subdomain') return readable(`${asked.value}.${around.domain}`)
  const rest = withoutScheme(proto, asked.value)
  if (rest instanceof BindRefusal || rest === '') return rest || undefined
  return proto === 'tcp' ? tcpAddress(rest, around) : nameAddress(proto, rest, around)
}

/** Agents send URLs with or without a scheme, or a scheme alone, which names nothing. */
function withoutScheme(proto: Proto, text: string): string | BindRefusal {
  const [, scheme, rest = text] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(text) ?? []
  if (scheme !== undefined && scheme.toLowerCase() !== proto) {
    return refusals.bindInvalid(`its URL begins with \`${scheme.slice(0, 20)}://\` but its protocol is \`${proto}\``)
  }
  return rest.replace(/\/$/, '')
}

function nameAddress(proto: 'http' | 'https' | 'tls', text: string, around: ServedAddresses): Address | BindRefusal {
  const [, host = text, port] = /^([^:]*):(\d{1,5})$/.exec(text) ?? []
  if (port !== undefined) {
    const { http, https } = around.publicPorts()
    const [usual, own] = proto === 'http' ? [80, http] : [443, https]
    if (Number(port) !== usual && Number(port) !== own) {
      return refusals.bindInvalid(`${proto} endpoints are served on port ${own} alone; leave the port out of the name`)
    }
  }
  return readable(host)
}

/** `host:port`, `:port` or `port`; with port 0 the server chooses. */
function tcpAddress(text: string, { domain, tcpPorts }: ServedAddresses): Address | BindRefusal | undefined {
  const [match, host = '', digits] = /^(?:(.*):)?(\d{1,5})$/s.exec(text) ?? []
  if (match === undefined) return refusals.bindInvalid('a TCP address has the form `host:port`')
  const port = Number(digits)
  if (port === 0) return undefined
  if (!tcpPorts.has(port)) return refusals.portOutside(port, tcpPorts.range)
  try {
    const address = readHostport(`${host || domain}:${port}`)
    if (!address.host.startsWith('*.')) return address
    return refusals.badCharacter(text, 'cannot have a `*`, since it is an address')
  } catch (error) {
    return badName(host, error)
  }
}

function readable(text: string): Address | BindRefusal {
  try {
    const host = readName(text)
    if (isIP(host)) return refusals.badCharacter(text, 'is an address; endpoints of this kind need a name')
    return { host, port: undefined }
  } catch (error) {
    return badName(text, error)
  }
}

function badName(text: string, error: unknown): BindRefusal {
  if (!(error instanceof BadInput)) throw error
  const [, refuse] = nameFaults.find(([matches]) => matches(text)) ?? [undefined, refusals.badCharacter]
  return refuse(text, error.message)
}

/** The vendor has different numbers for an invalid URL and an invalid name. */
function ofUrl(refusal: BindRefusal): BindRefusal {
  return refusal.ngrok === refusals.badCharacter('', '').ngrok ? refusals.badUrl(refusal.message) : refusal
}

const INTERNAL = '.internal'
/** Longer than any URL with just a name, in characters. */
const MAX_ASKED = 1024

const hasLabel = (pattern: RegExp) => (text: string) => text.split('.').some((label) => pattern.test(label))

/** Faults of a name; the first that applies counts. */
const nameFaults: readonly [matches: (text: string) => boolean, refuse: (name: string, what: string) => BindRefusal][] =
  [
    [(text) => text.includes('_'), refusals.underscore],
    [(text) => /[^a-z0-9.*\-\u0080-\u{10ffff}]/iu.test(text), refusals.badCharacter],
    [(text) => text.length > 253, refusals.nameTooLong],
    [(text) => /^\.|\.\./.test(text), refusals.badDot],
    [hasLabel(/^.{64}/u), refusals.labelTooLong],
    [hasLabel(/^-/), refusals.hyphenFirst],
    [hasLabel(/-$/), refusals.hyphenLast],
    [hasLabel(/^(?!xn).{2}--/i), refusals.hyphensLikePunycode],
    // Names in other scripts that have no ASCII form.
    [(text) => /[^\0-\x7f]|(^|\.)xn--/i.test(text), refusals.noAsciiForm],
  ]
