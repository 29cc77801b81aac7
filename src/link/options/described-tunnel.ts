/** Reads a tunnel as people describe it, in a file or with flags: what the server needs to know, without the service. */
import { type Opts, readEndpointOptions, type TunnelKind } from './endpoint-options.ts'
import type { ReadText } from './file-values.ts'
import type { OptionReader } from './option-reader.ts'

/** The protocol of visitors, as a bind spells it. */
export type Proto = 'http' | 'https' | 'tcp' | 'tls'

export interface DescribedTunnel {
  readonly kind: TunnelKind
  /** Instead of an address. */
  readonly labels: Readonly<Record<string, string>> | undefined
  /** One protocol, or for http tunnels both, HTTPS first. */
  readonly protos: readonly Proto[]
  readonly opts: Opts
  /** The HTTP version of the service; `''` when it was not given. */
  readonly forwardsProto: '' | 'http1' | 'http2'
  readonly metadata: string
  /** Other tunnels of the same owner may have its address too. */
  readonly isPooled: boolean
}

interface DescriptionContext {
  readonly readText: ReadText
  /** Environment variables, which may hold secrets that are not in the file or flags. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** The service's own `Host`; undefined if unknown. */
  readonly ownHost: string | undefined
}

/** The kind of the tunnel that `reader` holds; one with labels has no address of its own. */
export function readKind(reader: OptionReader): TunnelKind {
  const proto = reader.choice('proto', ['http', 'tcp', 'tls'])
  if (!reader.has('labels')) return proto ?? 'http'
  if (proto) reader.fault('proto', 'cannot be combined with `labels`: the edge decides')
  return 'labeled'
}

/** Reads everything but the service. The reader notes problems; if there are any, the result must not be used. */
export function readDescription(reader: OptionReader, kind: TunnelKind, context: DescriptionContext): DescribedTunnel {
  const labels = readLabels(reader)
  const opts = readEndpointOptions(reader, { ...context, kind })
  const protos = readProtos(reader, kind, opts)
  rewriteHost(reader, kind, context.ownHost, opts)
  const forwardsProto = reader.choice('app_protocol', ['http1', 'http2']) ?? ''
  const isPooled = readPooling(reader, kind)
  return { kind, labels, protos, opts, forwardsProto, isPooled, metadata: reader.text('metadata') ?? '' }
}

function readLabels(reader: OptionReader): Readonly<Record<string, string>> | undefined {
  const pairs = reader.pairs('labels', '=')
  if (pairs?.length === 0) reader.fault('labels', 'must not be empty')
  return pairs && Object.fromEntries(pairs)
}

function readProtos(reader: OptionReader, kind: TunnelKind, { URL: url }: Opts): readonly Proto[] {
  const schemes = reader.texts('schemes')
  if (schemes === undefined) {
    if (kind === 'tcp' || kind === 'tls') return [kind]
    return [typeof url === 'string' && /^http:\/\//i.test(url) ? 'http' : 'https']
  }
  if (kind !== 'http') reader.fault('schemes', `is for http tunnels, and this one is ${kind}`)
  // HTTPS first, because the plain HTTP endpoint takes its name.
  const protos = (['https', 'http'] as const).filter((each) => schemes.includes(each))
  if (protos.length === 0 || protos.length !== new Set(schemes).size) {
    reader.fault('schemes', 'must be `http`, `https` or both')
  }
  return protos
}

/** The server writes the headers, so a rewritten `Host` is a header rule. */
function rewriteHost(reader: OptionReader, kind: TunnelKind, ownHost: string | undefined, opts: Opts): void {
  const wanted = reader.word('host_header')
  if (wanted === undefined || wanted === 'preserve') return
  if (kind !== 'http') {
    reader.fault('host_header', `is for http tunnels, and this one is ${kind}`)
    return
  }
  if (/[\r\n\0]/.test(wanted)) reader.fault('host_header', 'must be a name')
  const host = wanted === 'rewrite' ? ownHost : wanted
  if (host === undefined)
    reader.fault('host_header', 'must be a name here: the server does not know the name of your service')
  // Only `readEndpointOptions` sets this, in this form.
  const rules = opts.RequestHeaders as { add: string[]; remove: readonly string[] } | undefined
  opts.RequestHeaders = { add: [...(rules?.add ?? []), `host:${host}`], remove: rules?.remove ?? [] }
  opts.HostHeaderRewrite = true
}

function readPooling(reader: OptionReader, kind: TunnelKind): boolean {
  const isPooled = reader.flag('pooling') ?? false
  if (isPooled && kind === 'labeled')
    reader.fault('pooling', 'cannot be combined with `labels`: a tunnel group is a pool')
  return isPooled
}
