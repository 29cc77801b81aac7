/** Reads the head of a request, and refuses what two servers could read differently. */
import { flatText } from '../../../lib/text/flat-text.ts'
import type { RequestHead } from '../../requests/http-exchange.ts'
import { inTarget, inToken, SPACE } from './characters.ts'
import { announcedBody } from './framing.ts'
import { HeadFault, malformedHead } from './head-fault.ts'
import type { Head } from './head-reader.ts'
import { type HeadFields, parseFields } from './header-fields.ts'

export interface ParsedRequest extends RequestHead {
  /** HTTP/1.0 (D101): no chunks, no interim responses, no upgrade, and a close after the answer unless it asks for another. */
  readonly isOld: boolean
  /** The visitor sends no other request on this connection. */
  readonly closes: boolean
  readonly expectsContinue: boolean
}

const VERSION_LINE = 'HTTP/1.1\r\n'
const OLD_VERSION_LINE = 'HTTP/1.0\r\n'

interface RequestRules {
  readonly maxHeaders: number
  /** The host of a request of HTTP/1.0 that names none. */
  readonly serverName?: string | undefined
}

/** A name or an address, and a port: no userinfo, no percent signs, nothing that could end a host elsewhere. */
const authorityForm = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/
const absolute = /^https?:\/\/([^/?]*)(.*)$/i

/**
 * Written by hand: Node's parser is lenient where an edge must not be. It accepts codings, hosts and line ends that the service
 * behind the edge may read differently, which is how requests are smuggled. A proxy also needs only the head, which makes this
 * parser several times cheaper.
 */
export function parseRequestHead(head: Head, { maxHeaders, serverName }: RequestRules): ParsedRequest | HeadFault {
  const { bytes, text } = head
  // RFC 9112 §2.2: one empty line before a request is an old mistake and harmless.
  const from = text.startsWith('\r\n') ? head.from + 2 : head.from
  let i = from
  while (inToken(bytes[i] ?? 0)) i++
  if (i === from || bytes[i] !== SPACE) return malformedHead('a request line without a method')
  const methodTo = i++
  while (inTarget(bytes[i] ?? 0)) i++
  if (i === methodTo + 1 || bytes[i] !== SPACE) return malformedHead('a request line without a valid target')
  const targetTo = i++
  const isOld = !text.startsWith(VERSION_LINE, i - head.from)
  if (isOld && !text.startsWith(OLD_VERSION_LINE, i - head.from)) {
    const isOther = /^HTTP\/[0-9]\.[0-9]\r\n/.test(text.slice(i - head.from))
    if (isOther) return new HeadFault('version', 'another version of HTTP')
    return malformedHead('a request line without a version')
  }
  const fields = parseFields(head, i + VERSION_LINE.length, { maxFields: maxHeaders, dropsUnderscores: true })
  if (fields instanceof HeadFault) return fields
  if (isOld) fields.host ??= serverName
  // The usual method is a literal: comparing it, or looking it up in a table, then needs only its address.
  const method = text.startsWith('GET ', from - head.from) ? 'GET' : text.slice(from - head.from, methodTo - head.from)
  return assemble(method, text.slice(methodTo + 1 - head.from, targetTo - head.from), fields, isOld)
}

function assemble(method: string, sentTarget: string, fields: HeadFields, isOld: boolean): ParsedRequest | HeadFault {
  const { host, headers } = fields
  if (host === undefined) return malformedHead('no Host header')
  const authority = authorityOf(host)
  if (authority === undefined) return malformedHead('a Host that is not a name and a port')
  const target = targetOf(method, sentTarget, host)
  if (target instanceof HeadFault) return target
  // RFC 9112 §6.1: it has no chunks, and one that sends some passes on what it does not understand.
  if (isOld && fields.transferEncoding !== undefined) return malformedHead('a Transfer-Encoding in HTTP/1.0')
  const body = announcedBody(fields)
  if (body instanceof HeadFault) return body
  const upgrade = isOld ? undefined : upgradeOf(fields)
  // After a 101 the service and the edge could disagree on where the body ends.
  if (upgrade !== undefined && body !== 'none' && body !== 0) return malformedHead('an Upgrade with a body')
  if (fields.isDemanding) return new HeadFault('expectation', 'an expectation that is not 100-continue')
  const closes = fields.closes || (isOld && !fields.keepsAlive)
  const expectsContinue = fields.expectsContinue && !isOld
  return { method, target, authority, headers, version: '1.1', body, upgrade, isOld, closes, expectsContinue }
}

/** The last valid authority: many requests in a row have the same one, and get the same string. */
let lastAuthority = ''

function authorityOf(host: string): string | undefined {
  if (host === lastAuthority) return lastAuthority
  if (!authorityForm.test(host)) return undefined
  lastAuthority = flatText(host)
  return lastAuthority
}

/** Path and query, from any form of RFC 9112 §3.2; CONNECT and its form are for forward proxies. */
function targetOf(method: string, sent: string, host: string): string | HeadFault {
  if (method === 'CONNECT') return malformedHead('CONNECT')
  if (sent.startsWith('/')) return sent
  if (sent === '*') return method === 'OPTIONS' ? sent : malformedHead('a target of * without OPTIONS')
  const [, sentHost = '', rest = ''] = absolute.exec(sent) ?? []
  if (sentHost === '') return malformedHead('a target that is neither a path nor a URL')
  if (sentHost.toLowerCase() !== host.toLowerCase()) return malformedHead('a target of another host than Host')
  if (rest === '' && method === 'OPTIONS') return '*'
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** The requested protocols. h2c is not offered, and some clients send it with every request: it counts as none. */
function upgradeOf({ namesUpgrade, upgrade }: HeadFields): string | undefined {
  if (!namesUpgrade || upgrade === undefined) return undefined
  const wanted = upgrade
    .split(',')
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== '' && protocol.toLowerCase() !== 'h2c')
  return wanted.length > 0 ? wanted.join(', ') : undefined
}
