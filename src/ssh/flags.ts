/** The flags of the commands, spelled as the agent's: each says which tunnels can have it and what it asks of a bind. */

export type TunnelKind = 'http' | 'tls' | 'tcp' | 'labeled'

/** What the flags of a command ask for. */
export interface Wishes {
  /** The options of a bind, as agents spell them. */
  readonly opts: Record<string, unknown>
  readonly labels: Record<string, string>
  scheme: 'http' | 'https' | undefined
  /** The flag that names the address. */
  namedBy: NameFlag | undefined
  metadata: string
  name: string
  description: string
  /** What the service speaks, when it is not HTTP/1.1. */
  forwardsProto: '' | 'http1' | 'http2'
}

export interface NameFlag {
  readonly flag: string
  /** The vendor's number for a name that also stands in the forward. */
  readonly ngrok: number
}

export interface Flag {
  readonly name: string
  /** What stands for the value in the help; without it the flag is a switch. */
  readonly takes?: string
  readonly for: readonly TunnelKind[]
  readonly about: string
  /** Notes the value; gives what is wrong with it. */
  readonly note: (value: string, wishes: Wishes) => string | undefined
}

const all: readonly TunnelKind[] = ['http', 'tls', 'tcp']
const each: readonly TunnelKind[] = [...all, 'labeled']
const named: readonly TunnelKind[] = ['http', 'tls']
const http: readonly TunnelKind[] = ['http']

export const flags: readonly Flag[] = [
  { name: 'domain', takes: 'name', for: named, about: 'the name to ask for', note: names('domain', 'Domain', 1118) },
  { name: 'hostname', takes: 'name', for: named, about: 'same as --domain', note: names('hostname', 'Hostname', 1114) },
  {
    name: 'subdomain',
    takes: 'name',
    for: named,
    about: 'a name under the domain of the server',
    note: names('subdomain', 'Subdomain', 1115),
  },
  {
    name: 'remote-addr',
    takes: 'host:port',
    for: ['tcp'],
    about: 'the address to ask for',
    note: names('remote-addr', 'Addr', 1119),
  },
  { name: 'url', takes: 'url', for: all, about: 'the whole address to ask for', note: names('url', 'URL', 1120) },
  {
    name: 'scheme',
    takes: 'scheme',
    for: http,
    about: 'http or https, for a forward of port 0',
    note(value, wishes) {
      if (value !== 'http' && value !== 'https') return 'must be http or https'
      wishes.scheme = value
      return undefined
    },
  },
  {
    name: 'label',
    takes: 'name=value',
    for: ['labeled'],
    about: 'serve the edges that look for it (repeatable)',
    note(value, { labels }) {
      const [, key, text] = /^([^=]+)=([^=]+)$/s.exec(value) ?? []
      if (key === undefined || text === undefined) return 'must be name=value'
      if (Object.hasOwn(labels, key)) return `has the label ${key} twice`
      labels[key] = text
      return undefined
    },
  },
  { name: 'metadata', takes: 'text', for: each, about: 'shown in the API', note: notes('metadata') },
  { name: 'name', takes: 'text', for: all, about: 'what people call the tunnel', note: notes('name') },
  { name: 'description', takes: 'text', for: all, about: 'what it is for', note: notes('description') },
  {
    name: 'basic-auth',
    takes: 'user:password',
    for: http,
    about: 'who may visit (repeatable)',
    note(value, { opts }) {
      const [, username, password] = /^([^:]+):(.+)$/s.exec(value) ?? []
      if (username === undefined) return 'must be user:password'
      list(map(opts, 'BasicAuth'), 'credentials').push({ username, cleartext_password: password })
      return undefined
    },
  },
  { name: 'cidr-allow', takes: 'cidr', for: all, about: 'addresses that may visit (repeatable)', note: cidr('allow') },
  { name: 'cidr-deny', takes: 'cidr', for: all, about: 'those that may not (repeatable)', note: cidr('deny') },
  {
    name: 'proxy-proto',
    takes: 'version',
    for: all,
    about: 'PROXY header that the service wants: 1 or 2',
    note(value, { opts }) {
      if (!/^[012]$/.test(value)) return 'must be 1 or 2'
      opts.ProxyProto = Number(value)
      return undefined
    },
  },
  {
    name: 'host-header',
    takes: 'name',
    for: http,
    about: 'the Host that the service sees',
    note(value, { opts }) {
      if (value === 'preserve') return undefined
      if (value === 'rewrite') return 'needs a name: this server does not know that of your service'
      list(map(opts, 'RequestHeaders'), 'add').push(`host:${value}`)
      opts.HostHeaderRewrite = true
      return undefined
    },
  },
  ...(['request', 'response'] as const).flatMap(headerFlags),
  { name: 'compression', for: http, about: 'compress answers', note: switches('Compression') },
  {
    name: 'circuit-breaker',
    takes: 'share',
    for: http,
    about: 'share of failed answers, 0 to 1, at which visitors are turned away for a while',
    note(value, { opts }) {
      const share = Number(value)
      if (value.trim() === '' || !(share >= 0 && share <= 1)) return 'must be a number from 0 to 1'
      opts.CircuitBreaker = { error_threshold: share }
      return undefined
    },
  },
  {
    name: 'verify-webhook',
    takes: 'provider',
    for: http,
    about: 'take only signed webhooks of this provider',
    note: webhook('provider'),
  },
  {
    name: 'verify-webhook-secret',
    takes: 'secret',
    for: http,
    about: 'what they are signed with',
    note: webhook('secret'),
  },
  {
    name: 'ua-filter-allow',
    takes: 'regex',
    for: http,
    about: 'user agents that may visit (repeatable)',
    note: userAgents('allow'),
  },
  {
    name: 'ua-filter-deny',
    takes: 'regex',
    for: http,
    about: 'those that may not (repeatable)',
    note: userAgents('deny'),
  },
  {
    name: 'websocket-tcp-converter',
    for: http,
    about: 'turn websockets into plain TCP',
    note: switches('WebsocketTCPConverter'),
  },
  {
    name: 'app-protocol',
    takes: 'name',
    for: http,
    about: 'what the service speaks: http1 or http2',
    note(value, wishes) {
      if (value !== 'http1' && value !== 'http2') return 'must be http1 or http2'
      wishes.forwardsProto = value
      return undefined
    },
  },
  {
    name: 'terminate-at',
    takes: 'place',
    for: ['tls'],
    about: 'where TLS ends: edge or upstream',
    note(value, { opts }) {
      if (value !== 'edge' && value !== 'upstream') return 'must be edge or upstream'
      if (value === 'edge') opts.TLSTermination = {}
      return undefined
    },
  },
  {
    name: 'traffic-policy',
    takes: 'json',
    for: all,
    about: 'a traffic policy, as JSON or YAML',
    note(value, { opts }) {
      opts.TrafficPolicy = value
      return undefined
    },
  },
]

/** Flags of agents that cannot work here, by how they begin, and why. */
export const unsupported: readonly (readonly [begin: string, why: string])[] = [
  ['traffic-policy-file', 'names a file, and this server cannot read your disk; give the policy with --traffic-policy'],
  ['traffic-policy-url', 'is not served; give the policy itself with --traffic-policy'],
  ['mutual-tls-cas', 'names a file, and this server cannot read your disk; use our agent, or an edge'],
  ['crt', 'names a file, and this server cannot read your disk; use our agent'],
  ['key', 'names a file, and this server cannot read your disk; use our agent'],
  ['upstream-', 'is for services with TLS, and ssh connects to yours in plain TCP; use our agent'],
  ['oauth', 'is not served for tunnels; use an edge'],
  ['oidc', 'is not served for tunnels; use an edge'],
  ['pooling', 'cannot be had: an address has one tunnel; use the command `labeled` and a tunnel group'],
]

function names(flag: string, option: string, ngrok: number): Flag['note'] {
  return (value, wishes) => {
    if (value === '') return 'must not be empty'
    if (wishes.namedBy) return `cannot stand beside ${wishes.namedBy.flag}: a tunnel has one name`
    wishes.namedBy = { flag: `--${flag}`, ngrok }
    wishes.opts[option] = value
    return undefined
  }
}

function notes(key: 'metadata' | 'name' | 'description'): Flag['note'] {
  return (value, wishes) => {
    wishes[key] = value
    return undefined
  }
}

function headerFlags(way: 'request' | 'response'): Flag[] {
  const option = way === 'request' ? 'RequestHeaders' : 'ResponseHeaders'
  const who = way === 'request' ? 'the service gets' : 'visitors get'
  return [
    {
      name: `${way}-header-add`,
      takes: 'name:value',
      for: http,
      about: `header that ${who} too (repeatable)`,
      note(value, { opts }) {
        const [, name, text] = /^([^:\s]+):\s*(.*)$/s.exec(value) ?? []
        if (name === undefined) return 'must be name:value'
        list(map(opts, option), 'add').push(`${name}:${text}`)
        return undefined
      },
    },
    {
      name: `${way}-header-remove`,
      takes: 'name',
      for: http,
      about: `header that ${who} not (repeatable)`,
      note(value, { opts }) {
        list(map(opts, option), 'remove').push(value)
        return undefined
      },
    },
  ]
}

function cidr(way: 'allow' | 'deny'): Flag['note'] {
  return (value, { opts }) => {
    const networks = map(opts, 'IPRestriction')
    list(networks, 'allow_cidrs')
    list(networks, 'deny_cidrs')
    list(networks, `${way}_cidrs`).push(value)
    return undefined
  }
}

function userAgents(way: 'allow' | 'deny'): Flag['note'] {
  return (value, { opts }) => {
    const filter = map(opts, 'UserAgentFilter')
    list(filter, 'allow')
    list(filter, 'deny')
    list(filter, way).push(value)
    return undefined
  }
}

function webhook(key: 'provider' | 'secret'): Flag['note'] {
  return (value, { opts }) => {
    map(opts, 'WebhookVerification')[key] = value
    return undefined
  }
}

function switches(option: string): Flag['note'] {
  return (value, { opts }) => {
    if (value !== 'true' && value !== 'false') return 'takes no value'
    if (value === 'true') opts[option] = {}
    return undefined
  }
}

/** Written by these lines alone, so that what is there has this form. */
function map(opts: Record<string, unknown>, key: string): Record<string, unknown> {
  opts[key] ??= {}
  return opts[key] as Record<string, unknown>
}

function list(of: Record<string, unknown>, key: string): unknown[] {
  of[key] ??= []
  return of[key] as unknown[]
}
