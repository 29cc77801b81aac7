/** Repeats an exchange: the request passes the whole edge as if its visitor sent it again; the answer is only kept. */
import type { Clock } from '../../lib/clock.ts'
import { HeaderList } from '../../lib/http/header-list.ts'
import { headerName } from '../../lib/http/header-name.ts'
import { isFieldContent } from '../../lib/http/http-header.ts'
import { MAX_CAPTURED_BODY } from '../../model/capture.ts'
import { Refusal } from '../../model/errors.ts'
import type { KeptHeader, ReplayAsk, SeenExchange, WholeExchange } from '../../model/exchange.ts'
import { isSensitiveHeader } from '../../model/sensitive-headers.ts'
import type { FindEdge, VisitorConnection } from '../edge/proxy/pick-edge.ts'
import { hostOf } from '../requests/host-authority.ts'
import type { Exchange, RequestHead } from '../requests/http-exchange.ts'
import type { RunningCaptures } from '../requests/running-captures.ts'
import { DescribedExchange } from './described-exchange.ts'

interface ReplaysOptions {
  readonly edges: FindEdge
  readonly captures: Pick<RunningCaptures, 'keep'>
  /** Has the proxy answer a request. */
  readonly serve: (exchange: Exchange, connection: VisitorConnection) => void
  readonly publicPorts: () => Readonly<Record<SeenExchange['scheme'], number>>
  readonly now: Clock
}

/** How long the answer to a repeated request may take, in milliseconds: less than a call between nodes. */
const REPLAY_MS = 10_000

export class Replays {
  readonly #options: ReplaysOptions

  constructor(options: ReplaysOptions) {
    this.#options = options
  }

  /** Repeats `found`, with the changes that `ask` names; resolves with the id of the new exchange. Rejects with `Refusal`. */
  async repeat(found: WholeExchange, ask: ReplayAsk): Promise<string> {
    const { exchange } = found
    const headers = headersOf(found, ask)
    const body = bodyFrom(found, ask)
    const target = targetOf(exchange, ask)
    const authority = headers.get('host') ?? exchange.host
    headers.remove('host')
    const host = this.#hostOf(exchange, authority)
    const head: RequestHead = {
      method: ask.method ?? exchange.method,
      ...{ target, authority, headers },
      version: '1.1',
      body: body.length === 0 ? 'none' : body.length,
      upgrade: undefined,
    }
    return this.#send(exchange, new DescribedExchange(head, body), { serverName: host, ip: senderOf(exchange, ask) })
  }

  #send(exchange: SeenExchange, repeated: DescribedExchange, { serverName, ip }: Sender): Promise<string> {
    const { serve, captures, now, publicPorts } = this.#options
    const { promise, resolve } = Promise.withResolvers<string>()
    const capture = captures.keep({
      id: exchange.captureId ?? '',
      bodies: true,
      maxBodyBytes: MAX_CAPTURED_BODY,
      unmask: false,
    })
    const tls = {
      serverName,
      version: 'TLSv1.3',
      cipher: '',
      alpn: 'http/1.1',
      isResumed: false,
      clientCertificate: undefined,
    }
    const serverPort = publicPorts()[exchange.scheme]
    // Aborts, like a visitor that has waited long enough.
    const late = setTimeout(() => repeated.onAbort?.(), REPLAY_MS)
    serve(repeated, {
      peer: { ip, port: 0, serverIp: '', serverPort, startedAt: now() },
      tls: exchange.scheme === 'https' ? tls : undefined,
      // As on a connection whose handshake had no demands to meet, so that the edge checks everything now.
      edge: undefined,
      tlsKey: 'replay',
      current: undefined,
      asked: undefined,
      replay: { of: exchange.id, capture, noted: resolve },
    })
    return promise.finally(() => clearTimeout(late))
  }

  /** The requested host. It must belong to the same edge: a replay must not give access to other edges. */
  #hostOf({ edgeId, scheme }: SeenExchange, authority: string): string {
    const { edges } = this.#options
    const host = hostOf(authority)
    const edge = host === undefined ? undefined : scheme === 'https' ? edges.find(host) : edges.findPlain(host)
    if (host === undefined || !edge || edge.id !== edgeId) {
      throw new Refusal('NOT_REPLAYABLE', 'the edge that served it no longer serves this host here')
    }
    if (edge.tls?.clientAuthorities !== undefined) {
      throw new Refusal('NOT_REPLAYABLE', 'its edge asks visitors for a certificate, which a replay does not have')
    }
    return host
  }
}

interface Sender {
  readonly serverName: string
  readonly ip: string
}

/** D108: a visitor's address does not vouch for what the caller has written. */
function senderOf({ ip }: SeenExchange, { method, path, headers, body, callerIp }: ReplayAsk): string {
  if ((method ?? path ?? headers ?? body) === undefined) return ip
  if (callerIp) return callerIp
  throw new Refusal('NOT_REPLAYABLE', 'the node that was asked runs an older version, which cannot change a request')
}

function headersOf({ request }: WholeExchange, { headers, mayUseSecrets }: ReplayAsk): HeaderList {
  if (headers) return HeaderList.of(headers.map(({ name, value }, i) => checkHeader(name, value, i)))
  if (!request) throw new Refusal('NOT_REPLAYABLE', 'its headers were not kept; send them as `headers`')
  const isMasked = (header: KeptHeader): boolean =>
    header.isMasked || (!mayUseSecrets && isSensitiveHeader(header.name))
  const masked = request.headers.filter(isMasked).map(({ name }) => `\`${name}\``)
  if (masked.length > 0) {
    throw new Refusal('NOT_REPLAYABLE', `${masked.join(', ')} was masked; send all headers as \`headers\``)
  }
  return HeaderList.of(request.headers.map(({ name, value }) => [name, value]))
}

function checkHeader(name: string, value: string, i: number): [string, string] {
  const field = `headers[${i}]`
  if (!headerName(name).isToken) {
    throw new Refusal('INVALID_VALUE', `\`${field}.name\` is not the name of a header`, { field })
  }
  if (!isFieldContent(value)) {
    throw new Refusal('INVALID_VALUE', `\`${field}.value\` cannot be sent in a header`, { field })
  }
  return [name, value]
}

function bodyFrom({ exchange, request }: WholeExchange, { body }: ReplayAsk): Buffer {
  if (body !== undefined) return Buffer.from(body, 'base64')
  if (exchange.bytesIn === 0) return Buffer.alloc(0)
  const kept = request?.body
  if (!kept || kept.kept < kept.size) {
    throw new Refusal('NOT_REPLAYABLE', 'its body was not kept as a whole; send it as `body`')
  }
  return Buffer.from(kept.content, kept.encoding === 'text' ? 'utf8' : 'base64')
}

function targetOf({ path, isPathCut }: SeenExchange, ask: ReplayAsk): string {
  if (ask.path === undefined && isPathCut) {
    throw new Refusal('NOT_REPLAYABLE', 'its path is too long to be kept; send it as `path`')
  }
  return ask.path ?? path
}
