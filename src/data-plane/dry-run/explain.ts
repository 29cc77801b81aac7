/** Explains what an edge would do to described traffic (D55). */
import { X509Certificate } from 'node:crypto'
import { BadValue } from '../../lib/shape/check.ts'
import type { Described } from '../../model/described.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { ExplainedOutcome, ExplainWork, Explanation } from '../../model/explanation.ts'
import { type VisitorErrorCode, visitorErrors } from '../../model/visitor-errors.ts'
import type { TlsDemands, TlsFacts } from '../../modules/phases.ts'
import { PolicyNotes } from '../../modules/policy/traffic.ts'
import { BodyMemory } from '../edge/body-memory.ts'
import { type CompiledEdge, compileEdge } from '../edge/compile-edge.ts'
import { firstVerdict } from '../edge/compiled-edge.ts'
import { Sweep } from '../edge/deadlines.ts'
import { errorPages } from '../edge/pages/error-page.ts'
import { HttpProxy } from '../edge/proxy/http-proxy.ts'
import type { AccessRecord } from '../requests/access-record.ts'
import { DescribedExchange } from './described-exchange.ts'
import { DescribedUpstream, withoutServices } from './described-upstream.ts'
import { badVisit, connectionVisit, type DescribedHttp, type DescribedVisit, httpVisit } from './described-visit.ts'
import { dryTools } from './dry-tools.ts'
import { masking, secretsIn, secretsOf, shownHeaders } from './masks.ts'
import { StepNotes } from './step-notes.ts'

/** The request id in a dry run: always the same, and in no log. */
const DRY_REQUEST_ID = '0'.repeat(32)

/** The memory for bodies, used by one request only. */
const BODY_MEMORY_BYTES = 64 * 1024 * 1024

/** Throws `BadValue`, which names the field of the description. */
export async function explain(work: ExplainWork): Promise<Explanation> {
  const { config, asked, routeId } = work
  const now = Date.now()
  const upstream = new DescribedUpstream(asked.response)
  const calls: string[] = []
  const policy = new PolicyNotes(() => calls)
  const notes = new StepNotes({ policy, asked: calls })
  const tools = dryTools({ ...work, policy, now: () => now, onFetch: (what) => calls.push(what) })
  const secrets = secretsOf(config)
  const visit = describedVisit(asked, { config, routeId, now })
  if ('head' in visit) for (const secret of secretsIn(visit.head.headers)) secrets.add(secret)

  // An explanation cannot differ from what happens: the edge is compiled as for real traffic, and the same proxy answers. Only
  // the tools of the modules, and the visitor and the service at the two ends, are described.
  const edge = finish(compileEdge(withoutServices(config), { reach: upstream.reach, tools, watch: notes.watch }))
  try {
    const outcome = 'head' in visit ? await request(visit) : connection(visit)
    return masking(secrets)({ steps: notes.steps, outcome })
  } finally {
    edge.release()
    upstream.pool.close()
  }

  /** Runs the phases of a connection; returns why it ends, or undefined. */
  function admit({ peer, serverName, tls, chain }: DescribedVisit): ExplainedOutcome | undefined {
    if (edge.broken !== undefined) return refusedConnection('MODULE_UNAVAILABLE', edge.broken)
    const reached = { edgeId: edge.id, serverName }
    const accepted = firstVerdict(edge, edge.accept, (accept) => accept(peer, reached))
    if (accepted) return refusedConnection(accepted)
    if (edge.tls === null) return undefined
    const fault = handshakeFault(edge.tls, tls, chain)
    if (fault) {
      notes.note(fault.module, 'handshake', `the handshake fails: ${fault.reason}`)
      return { ...nothing, verdict: 'closes', text: `The handshake fails: ${fault.reason}.` }
    }
    const secured = firstVerdict(edge, edge.handshake, (handshake) => handshake(tls, peer, reached))
    return secured && refusedConnection(secured)
  }

  function connection(visit: DescribedVisit): ExplainedOutcome {
    const refused = admit(visit)
    if (refused) return refused
    if (!edge.backend) return refusedConnection('NO_BACKEND')
    return { ...nothing, verdict: 'passes', text: 'Every module lets the connection pass to the backend.' }
  }

  async function request(visit: DescribedHttp): Promise<ExplainedOutcome> {
    const refused = visit.isPlain ? undefined : admit(visit)
    if (refused) return refused
    const { exchange, record } = await runProxy(visit)
    const { route } = record
    if (routeId !== undefined && route !== undefined && route !== routeId) {
      throw badVisit('request.url', `goes to the route ${route}, not to ${routeId}; describe a request that it takes`)
    }
    // The API does not know the route of an agent's endpoint.
    const route_id = config.id.startsWith('ep_') ? null : (route ?? null)
    if (notes.depends !== undefined) return { ...nothing, verdict: 'depends', text: notes.depends, route_id }
    return { ...describeAnswer(exchange, record), route_id }
  }

  /** Runs the request through the proxy, to its end. */
  async function runProxy(visit: DescribedHttp): Promise<{ exchange: DescribedExchange; record: AccessRecord }> {
    const { head, body, peer, isPlain } = visit
    const exchange = new DescribedExchange(head, body)
    const tls = isPlain ? undefined : visit.tls
    const record = await new Promise<AccessRecord>((resolve) => {
      const proxy = new HttpProxy({
        edges: {
          find: () => (edge.kind === 'http' ? undefined : edge),
          findPlain: () => (edge.kind === 'http' ? edge : undefined),
        },
        pool: upstream.pool,
        sweep: new Sweep(),
        bodyMemory: new BodyMemory({ bytes: BODY_MEMORY_BYTES }),
        pages: () => errorPages(work),
        log: tools.log,
        publicHttpsPort: () => work.publicHttpsPort,
        onRequest: resolve,
        now: () => now,
        newRequestId: () => DRY_REQUEST_ID,
      })
      const met = isPlain ? undefined : edge
      proxy.handle(exchange, { peer, tls, edge: met, tlsKey: met?.tlsKey ?? '', current: met, asked: undefined })
    })
    return { exchange, record }
  }

  function describeAnswer(
    { answer, answered: body, isClosed }: DescribedExchange,
    record: AccessRecord,
  ): ExplainedOutcome {
    const forwarded = upstream.request && {
      method: upstream.request.method,
      url: upstream.request.target,
      headers: shownHeaders(upstream.request.headers),
    }
    const common = { ...nothing, upstream: forwarded ?? null }
    if (!answer) {
      const who = notes.decider ?? 'The edge'
      return { ...common, verdict: 'closes', text: isClosed ? `${who} closes the connection.` : 'There is no answer.' }
    }
    const isEncoded = answer.headers.has('content-encoding')
    const shown = {
      ...common,
      status_code: answer.status,
      headers: shownHeaders(answer.headers),
      body: isEncoded || body.length === 0 ? null : body.toString(),
    }
    const { fault, route } = record
    // Why a module cannot be applied, when that is the error.
    const broken = edge.routes.find(({ id }) => id === route)?.broken
    if (fault !== undefined) {
      return {
        ...shown,
        verdict: 'refuses',
        error_code: `ERR_${fault}`,
        text: refusalText(fault, fault === 'MODULE_UNAVAILABLE' ? broken : undefined),
      }
    }
    if (notes.decider !== undefined) {
      return { ...shown, verdict: 'answers', text: `${notes.decider} answers ${answer.status}.` }
    }
    if (route === undefined) return { ...shown, verdict: 'answers', text: `The edge answers ${answer.status}.` }
    return { ...shown, verdict: 'passes', text: `Every module lets it pass; the backend answers ${answer.status}.` }
  }
}

function describedVisit(
  asked: Described,
  around: { config: EdgeConfig; routeId: string | undefined; now: number },
): DescribedVisit | DescribedHttp {
  const { kind } = around.config
  if (kind === 'https' || kind === 'http') {
    if (asked.request) return httpVisit(asked, asked.request, around)
    throw new BadValue('request', 'required', '`request` is required: this edge sees requests; describe one')
  }
  const name = kind === 'tcp' ? 'a TCP edge' : 'a TLS edge'
  if (asked.request) throw badVisit('request', `is nothing that ${name} sees; describe \`connection\` instead`)
  if (asked.connection) return connectionVisit(asked, around)
  throw new BadValue('connection', 'required', `\`connection\` is required: ${name} sees connections; describe one`)
}

const nothing: ExplainedOutcome = {
  verdict: 'closes',
  text: '',
  status_code: null,
  error_code: null,
  headers: {},
  body: null,
  route_id: null,
  upstream: null,
}

function refusedConnection(code: VisitorErrorCode, reason?: string): ExplainedOutcome {
  return { ...nothing, verdict: 'closes', error_code: `ERR_${code}`, text: refusalText(code, reason) }
}

function refusalText(code: VisitorErrorCode, reason: string | undefined): string {
  return reason === undefined ? visitorErrors[code].text : `${visitorErrors[code].text} (${reason})`
}

function finish(steps: ReturnType<typeof compileEdge>): CompiledEdge {
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/** From oldest to newest. */
const versions: readonly string[] = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

/** Certificates of a chain that are followed. */
const MAX_CHAIN = 10

/**
 * Why a described handshake does not meet what an edge demands of TLS, and the module that demands it: for real traffic, TLS itself
 * checks that.
 */
function handshakeFault(
  { minVersion = 'TLSv1.2', clientAuthorities }: TlsDemands,
  { version, clientCertificate }: TlsFacts,
  chain: readonly X509Certificate[],
): { module: string; reason: string } | undefined {
  if (versions.indexOf(version) < versions.indexOf(minVersion)) {
    return { module: 'tls_termination', reason: `${version} is older than ${minVersion}` }
  }
  // The module itself refuses a client without a certificate.
  if (!clientAuthorities || !clientCertificate) return undefined
  const authorities = clientAuthorities.map((pem) => new X509Certificate(pem))
  if (chainsTo(clientCertificate, chain, authorities)) return undefined
  return { module: 'mutual_tls', reason: 'the certificate of the client does not lead to one of the authorities' }
}

function chainsTo(
  leaf: X509Certificate,
  chain: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): boolean {
  let current = leaf
  for (let i = 0; i < MAX_CHAIN; i++) {
    const certificate = current
    const isIssuedBy = (issuer: X509Certificate): boolean =>
      certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
    if (authorities.some((each) => each.fingerprint256 === certificate.fingerprint256 || isIssuedBy(each))) return true
    const next = chain.find((each) => each !== certificate && each.ca && isIssuedBy(each))
    if (!next) return false
    current = next
  }
  return false
}
