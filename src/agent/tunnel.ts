/** One tunnel of an agent: what it asks the server for, what it got, and where its connections go. */
import { Secret } from '../lib/secrets/secret.ts'
import type { Proto } from '../options/described-tunnel.ts'
import type { BindAnswer, BindMessage } from '../wire/messages/bind.ts'
import type { LabelMessage } from '../wire/messages/tunnels.ts'
import type { AgentFault } from './fault.ts'
import type { ForwardTarget } from './forward.ts'

export interface AgentTunnelPlan {
  /** What people call it. */
  readonly name: string
  /** An address of its own, or labels by which an edge finds it. */
  readonly asks:
    | { readonly proto: Proto; readonly opts: Readonly<Record<string, unknown>> }
    | { readonly labels: Readonly<Record<string, string>> }
  readonly forwardsTo: string
  readonly forwardsProto: '' | 'http1' | 'http2'
  readonly metadata: string
  readonly description?: string | undefined
  readonly target: ForwardTarget
}

export class AgentTunnel {
  #plan: AgentTunnelPlan
  /** Resolves when it is online for the first time; rejects when the server refuses it or it is closed before. */
  readonly ready: Promise<void>
  readonly #ready = Promise.withResolvers<void>()
  /** The tunnel whose name this one takes too. */
  readonly #twin: AgentTunnel | undefined
  #got: BindAnswer | undefined
  #isOnline = false

  constructor(plan: AgentTunnelPlan, { twin }: { twin?: AgentTunnel | undefined } = {}) {
    this.#plan = plan
    this.#twin = twin
    this.ready = this.#ready.promise
    // Whoever opens the tunnel waits for it; nobody else has to.
    this.ready.catch(() => {})
  }

  get plan(): AgentTunnelPlan {
    return this.#plan
  }

  /** Leads its next connections elsewhere; the server learns of it with the next session. */
  lead(plan: AgentTunnelPlan): void {
    this.#plan = plan
  }

  /** The id that the server knows it by; `''` before it was online. */
  get id(): string {
    return this.#got?.id ?? ''
  }

  /** `https://name`, `tcp://host:port`; `''` for a tunnel with labels, and before it was online. */
  get url(): string {
    return this.#got?.url ?? ''
  }

  /** The id that the API shows; `''` when the server does not tell. */
  get tunnelId(): string {
    return this.#got?.tunnelId ?? ''
  }

  get labels(): Readonly<Record<string, string>> | undefined {
    return 'labels' in this.plan.asks ? this.plan.asks.labels : undefined
  }

  get isOnline(): boolean {
    return this.#isOnline
  }

  /** Whether it was online before, so that its name is its own. */
  get wasOnline(): boolean {
    return this.#got !== undefined
  }

  /** A twin must have its name before this one can ask for the same. */
  async twinIsReady(): Promise<void> {
    await this.#twin?.ready
  }

  /** What to ask for: the first time what the plan says, later exactly what the server gave. */
  bindRequest(): BindMessage | undefined {
    const { asks, forwardsTo, forwardsProto, metadata, name, description = '' } = this.plan
    if ('labels' in asks) return undefined
    const got = this.#got
    return {
      id: got?.id ?? '',
      proto: got?.proto ?? asks.proto,
      forwardsTo,
      forwardsProto,
      opts: got?.opts ?? { ...asks.opts, ...this.#nameOfTwin() },
      token: got?.token ?? new Secret(''),
      metadata,
      bindings: [],
      poolingEnabled: false,
      name,
      description,
    }
  }

  labelRequest(): LabelMessage | undefined {
    const { asks, forwardsTo, forwardsProto, metadata } = this.plan
    return 'labels' in asks ? { labels: asks.labels, forwardsTo, forwardsProto, metadata } : undefined
  }

  /** The server gave it what it asked for; true when that is news. */
  online(answer: BindAnswer): boolean {
    const isNew = this.#got === undefined || this.#got.url !== answer.url
    this.#got = answer
    this.#isOnline = true
    this.#ready.resolve()
    return isNew
  }

  offline(): void {
    this.#isOnline = false
  }

  /** It is over. */
  end(fault: AgentFault): void {
    this.#isOnline = false
    this.#ready.reject(fault)
  }

  #nameOfTwin(): Record<string, unknown> {
    const url = this.#twin?.url ?? ''
    return URL.canParse(url) ? { Hostname: new URL(url).hostname } : {}
  }
}
