/** The options of a bind: the name an agent asks for, and the options it expects in the answer. */

type Options = Readonly<Record<string, unknown>>

/** Fields that agents in Rust require in an answer, whatever they sent. */
const required: Readonly<Record<string, Options>> = {
  http: { Hostname: '', Auth: '', Subdomain: '', HostHeaderRewrite: false, ProxyProto: 0 },
  https: { Hostname: '', Auth: '', Subdomain: '', HostHeaderRewrite: false, ProxyProto: 0 },
  tcp: { Addr: '', ProxyProto: 0 },
  tls: { Hostname: '', Subdomain: '', ProxyProto: 0, MutualTLSAtAgent: false },
}

/** Fields that may hold the name; the first that is set wins. A subdomain still needs our domain. */
const nameFields = ['URL', 'Domain', 'Hostname', 'Subdomain'] as const
const addressFields = ['URL', 'Addr'] as const

type NameField = (typeof nameFields)[number] | (typeof addressFields)[number]

/** The name that `opts` asks for and its field; undefined leaves the choice to the server. */
export function requestedName(proto: string, opts: Options): { field: NameField; value: string } | undefined {
  for (const field of proto === 'tcp' ? addressFields : nameFields) {
    const value = option(opts, field)
    if (typeof value === 'string' && value !== '') return { field, value }
  }
  return undefined
}

/** The value of an option, whatever the case of its name. */
export function option(opts: Options, name: string): unknown {
  const key = keyOf(opts, name)
  return key === undefined ? undefined : opts[key]
}

/**
 * The options of the answer: the agent's own, in its spelling, with the address it got. `TLSTermination` is unchanged,
 * since agents learn from it whether streams carry TLS.
 */
export function echoOptions(proto: string, opts: Options, got: { host: string; port?: number; url?: string }): Options {
  const echo: Record<string, unknown> = { ...opts }
  for (const [name, value] of Object.entries(required[proto] ?? {})) {
    if (keyOf(echo, name) === undefined) echo[name] = value
  }
  if (proto === 'tcp') set(echo, 'Addr', `${got.host}:${got.port ?? ''}`)
  else set(echo, 'Hostname', got.host)
  if (option(opts, 'Domain')) set(echo, 'Domain', got.host)
  if (option(opts, 'URL') && got.url) set(echo, 'URL', got.url)
  return echo
}

function set(opts: Record<string, unknown>, name: string, value: unknown): void {
  opts[keyOf(opts, name) ?? name] = value
}

function keyOf(opts: Options, name: string): string | undefined {
  if (Object.hasOwn(opts, name)) return name
  const lower = name.toLowerCase()
  return Object.keys(opts).find((key) => key.toLowerCase() === lower)
}
