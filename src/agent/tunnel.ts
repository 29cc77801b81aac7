/** One tunnel of an agent: what it requests from the server, what it got, and where its connections go. */
import { Secret } from '../lib/secrets/secret.ts'
import type { Proto } from '../link/options/described-tunnel.ts'
import type { BindAnswer, BindMessage } from '../link/wire/messages/bind.ts'
import type { LabelMessage } from '../link/wire/messages/tunnel-messages.ts'
import type { AgentFault } from './agent-fault.ts'
import type { ForwardTarget } from './forward.ts'
import { TunnelBind } from './tunnel-bind.ts'

export interface AgentTunnelPlan {
  /** The name that people gave it. */
  readonly name: string
  /** An address of its own, or labels by which an edge finds it. */
  readonly asks:
    | {
        readonly proto: Proto
        readonly opts: Readonly<Record<string, unknown>>
        /** Other tunnels may have the same address. */
        readonly isPooled?: boolean
      }
    | { readonly labels: Readonly<Record<string, string>> }
  readonly forwardsTo: string
  readonly forwardsProto: '' | 'http1' | 'http2'
  readonly metadata: string
  readonly description?: string | undefined
  readonly target: ForwardTarget
}

export class AgentTunnel {
  #plan: AgentTunnelPlan
  /** Resolves when the tunnel is first online; rejects if the server refuses it or it is closed before. */
  readonly ready: Promise<void>
  readonly #ready = Promise.withResolvers<void>()
  /** Another tunnel whose host name this one shares. */
  readonly #twin: AgentTunnel | undefined
  /** The bind at the agent's first session, which is the one shown. */
  readonly main = new TunnelBind()
  /** The bind at the session at a second node, which only pooled tunnels have. */
  readonly second = new TunnelBind()

  constructor(plan: AgentTunnelPlan, { twin }: { twin?: AgentTunnel | undefined } = {}) {
    this.#plan = plan
    this.#twin = twin
    this.ready = this.#ready.promise
    // Only the caller that opened the tunnel has to handle the rejection.
    this.ready.catch(() => {})
  }

  get plan(): AgentTunnelPlan {
    return this.#plan
  }

  /** Sends new connections to the service of another plan; the server learns of it with the next session. */
  redirect(plan: AgentTunnelPlan): void {
    this.#plan = plan
  }

  /** Whether it is the plain HTTP address beside another tunnel of its name. */
  get isTwin(): boolean {
    return this.#twin !== undefined
  }

  /** The id that the server knows it by; `''` before it was online. */
  get id(): string {
    return this.main.got?.id ?? ''
  }

  /** `https://name`, `tcp://host:port`; `''` for a tunnel with labels, and before it was online. */
  get url(): string {
    return this.main.got?.url ?? ''
  }

  /** The id that the API shows; `''` when the server does not send it. */
  get tunnelId(): string {
    return this.main.got?.tunnelId ?? ''
  }

  get labels(): Readonly<Record<string, string>> | undefined {
    return 'labels' in this.plan.asks ? this.plan.asks.labels : undefined
  }

  /** Whether several tunnels may have its address. */
  get isPooled(): boolean {
    return 'proto' in this.plan.asks && this.plan.asks.isPooled === true
  }

  get isOnline(): boolean {
    return this.main.isOnline || this.second.isOnline
  }

  /** Whether the tunnel has been online, and so has a name that it may request again. */
  get wasOnline(): boolean {
    return this.main.got !== undefined
  }

  /** Resolves when the twin has its name, so that this tunnel can ask for the same one. */
  async twinIsReady(): Promise<void> {
    await this.#twin?.ready
  }

  /** What to request: at first what the plan says, later exactly the address that the server granted before. */
  bindRequest(bind: TunnelBind): BindMessage | undefined {
    const { asks, forwardsTo, forwardsProto, metadata, name, description = '' } = this.plan
    if ('labels' in asks) return undefined
    const given = bind.got ?? this.main.got
    return {
      id: bind.got?.id ?? '',
      proto: given?.proto ?? asks.proto,
      forwardsTo,
      forwardsProto,
      opts: given?.opts ?? { ...asks.opts, ...this.#nameOfTwin() },
      token: bind.got?.token ?? new Secret(''),
      metadata,
      bindings: [],
      poolingEnabled: asks.isPooled ?? false,
      name,
      description,
    }
  }

  labelRequest(): LabelMessage | undefined {
    const { asks, forwardsTo, forwardsProto, metadata } = this.plan
    return 'labels' in asks ? { labels: asks.labels, forwardsTo, forwardsProto, metadata } : undefined
  }

  /** Records what the server gave; true when its address is new. */
  online(bind: TunnelBind, answer: BindAnswer): boolean {
    const isNew = bind === this.main && bind.got?.url !== answer.url
    bind.online(answer)
    this.#ready.resolve()
    return isNew
  }

  /** Ends the tunnel for good. */
  end(fault: AgentFault): void {
    this.main.offline()
    this.second.offline()
    this.#ready.reject(fault)
  }

  #nameOfTwin(): Record<string, unknown> {
    const url = this.#twin?.url ?? ''
    return URL.canParse(url) ? { Hostname: new URL(url).hostname } : {}
  }
}
