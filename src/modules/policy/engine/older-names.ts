/** Translates variable names of spring 2024, such as `conn.ClientIP`, into the names that replaced them. */
import { type Expr, literal, type Node, pathOf } from './tree.ts'

const newer: Readonly<Record<string, string>> = {
  'conn.ClientIP': 'conn.client_ip',
  'conn.ClientPort': 'conn.client_port',
  'conn.Geo': 'conn.geo',
  'conn.Geo.City': 'conn.geo.city',
  'conn.Geo.Country': 'conn.geo.country',
  'conn.Geo.CountryCode': 'conn.geo.country_code',
  'conn.Geo.Latitude': 'conn.geo.latitude',
  'conn.Geo.Longitude': 'conn.geo.longitude',
  'conn.Geo.Radius': 'conn.geo.radius',
  'conn.Geo.Subdivision': 'conn.geo.subdivision',
  'conn.ServerIP': 'conn.server_ip',
  'conn.ServerPort': 'conn.server_port',
  'req.ClientTLS.SNI': 'conn.tls.sni',
  'req.ClientTLS.Version': 'conn.tls.version',
  'req.ClientTLS.CipherSuite': 'conn.tls.cipher_suite',
  'req.ContentLength': 'req.content_length',
  'req.ContentType': 'req.content_type',
  'req.Cookies': 'req.cookies',
  'req.Headers': 'req.headers',
  'req.Host': 'req.host',
  'req.Location': 'req.location',
  'req.Method': 'req.method',
  'req.Params': 'req.url.query_params',
  'req.Path': 'req.url.path',
  'req.Protocol': 'req.version',
  'req.URL': 'req.url',
  'req.UserAgent': 'req.user_agent',
  'res.ContentLength': 'res.content_length',
  'res.ContentType': 'res.content_type',
  'res.Cookies': 'res.cookies',
  'res.Headers': 'res.headers',
  'res.Location': 'res.location',
}

/** The newer name of a variable that has an older spelling. */
export function newerName(expr: Expr): string | undefined {
  const path = pathOf(expr)
  if (path !== undefined && Object.hasOwn(newer, path)) return newer[path]
  return undefined
}

const headers: ReadonlySet<string | undefined> = new Set(['req.Headers', 'res.Headers'])

/** The arguments of a call with newer names. Header names, once written `User-Agent`, are now in lower case. */
export function newerArguments({ function: name, args }: Node<'callExpr'>): Expr[] {
  const [first, second] = args
  if (!first || !second) return args
  if (name === '_[_]' && headers.has(pathOf(first))) return [first, inLowerCase(second)]
  if (name === '@in' && headers.has(pathOf(second))) return [inLowerCase(first), second]
  return args
}

function inLowerCase(expr: Expr): Expr {
  const { exprKind: kind } = expr
  const text = literal(expr)
  if (text === undefined || kind.case !== 'constExpr') return expr
  const constantKind = { case: 'stringValue' as const, value: text.toLowerCase() }
  return { ...expr, exprKind: { case: kind.case, value: { ...kind.value, constantKind } } }
}
