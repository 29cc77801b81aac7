/** The service in a dry run: answers as described, and keeps the request. */
import { HeaderList } from '../../lib/http/header-list.ts'
import { isFieldContent, isHeaderName } from '../../lib/http/http-header.ts'
import type { Described } from '../../model/described.ts'
import type { BackendPlan, EdgeConfig, ModuleSettings } from '../../model/edge-config.ts'
import type { Reach } from '../edge/backend.ts'
import { UpstreamPool } from '../edge/upstream-pool.ts'
import type { UpstreamConnection, UpstreamRequest, UpstreamSending, UpstreamSink } from '../requests/http-exchange.ts'
import { bodyOf, SilentStream } from './described-exchange.ts'
import { badVisit } from './described-visit.ts'

type Answer = NonNullable<Described['response']>

export class DescribedUpstream {
  /** The request as it was forwarded. */
  request: UpstreamRequest | undefined
  readonly reach: Reach = {
    dial: async () => new SilentStream(),
    followGroup: () => ({ members: [], release() {} }),
    random: () => 0,
  }
  readonly pool = new UpstreamPool({
    http1: () => this.#connection(),
    http2: () => {
      throw new Error('a described service speaks HTTP/1.1')
    },
  })
  readonly #answer: Answer

  constructor(answer: Answer | undefined) {
    this.#answer = answer ?? { status_code: 200, headers: {}, body: '' }
    for (const [name, values] of Object.entries(this.#answer.headers)) {
      const isFit = isHeaderName(name) && values.every(isFieldContent)
      if (!isFit) throw badVisit(`response.headers[${JSON.stringify(name)}]`, 'is not a header')
    }
  }

  #connection(): UpstreamConnection {
    const send: UpstreamConnection['send'] = (request, sink) => this.#send(request, sink)
    return { isFree: true, isClosed: false, onChange: undefined, close() {}, send }
  }

  #send(request: UpstreamRequest, sink: UpstreamSink): UpstreamSending {
    this.request = request
    const { status_code: status, headers, body } = this.#answer
    const bytes = Buffer.from(body)
    const list = new HeaderList()
    for (const [name, values] of Object.entries(headers)) {
      if (framing.has(name.toLowerCase())) continue
      for (const value of values) list.add(name, value.trim())
    }
    return {
      body: {
        onDrain: undefined,
        write: () => true,
        end: () =>
          void setImmediate(() => {
            sink.respond({ status, reason: '', headers: list, body: bytes.length }, bodyOf(bytes))
          }),
        abort() {},
      },
      cancel() {},
    }
  }
}

const framing: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'trailer'])

/** The same edge with the described service in place of all that would be dialled. */
export function withoutServices(config: EdgeConfig): EdgeConfig {
  return {
    ...config,
    modules: describeBackend(config.modules),
    routes: config.routes.map((route) => ({ ...route, modules: describeBackend(route.modules) })),
  }
}

function describeBackend(modules: ModuleSettings): ModuleSettings {
  // Only the backend module itself puts a plan under this name.
  const plan = modules.backend as BackendPlan | undefined
  return plan ? { ...modules, backend: planOf(plan) } : modules
}

function planOf(plan: BackendPlan): BackendPlan {
  switch (plan.kind) {
    case 'http_response':
      return plan
    case 'failover':
      return { ...plan, children: plan.children.map(planOf) }
    case 'weighted':
      return { ...plan, children: plan.children.map(({ weight, plan: each }) => ({ weight, plan: planOf(each) })) }
    case 'tunnel':
    case 'tunnel_group':
    case 'static':
      return { kind: 'tunnel', tunnelId: 'described', httpVersion: 1, proxyHeader: 0 }
  }
}
