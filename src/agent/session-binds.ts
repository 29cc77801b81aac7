/** The binds of one session of an agent: requests its tunnels, retries failed ones, and knows their ids. */
import { Secret } from '../lib/secrets/secret.ts'
import type { BindAnswer } from '../link/wire/messages/bind.ts'
import { type AgentFault, asFault } from './agent-fault.ts'
import type { Session } from './session.ts'
import type { Timers } from './timers.ts'
import type { AgentTunnel } from './tunnel.ts'
import type { TunnelBind } from './tunnel-bind.ts'

/** How long to wait before the next request for an address that the server did not give back, in milliseconds. */
const REBIND_MS = 15_000

/** The same while a former connection still serves it, which will end soon, in milliseconds. */
const REBIND_SOON_MS = 1000

export interface SessionBindsOptions {
  readonly timers: Timers
  /** Those of the agent. */
  readonly tunnels: ReadonlySet<AgentTunnel>
  /** Which of them the session should have. */
  readonly wants: (tunnel: AgentTunnel) => boolean
  /** Which of the tunnel's binds is the session's. */
  readonly bindOf: (tunnel: AgentTunnel) => TunnelBind
  /** Its current connection. */
  readonly session: () => Session | undefined
  /** Whether a former connection may still serve visitors. */
  readonly hasFormer: () => boolean
  /** Called for every bind that succeeds; the tunnel may have a new address. */
  readonly onBound?: ((tunnel: AgentTunnel, isNew: boolean, at: Session) => void) | undefined
  /** The server refused; the bind is retried, unless this call ends the tunnel. */
  readonly onRefused?: ((tunnel: AgentTunnel, fault: AgentFault) => void) | undefined
}

export class SessionBinds {
  readonly #options: SessionBindsOptions
  readonly #byId = new Map<string, AgentTunnel>()
  /** Tunnels that are being bound. */
  readonly #binding = new Map<AgentTunnel, Promise<void>>()
  /** Functions that cancel the next attempt for tunnels that were refused. */
  readonly #rebinds = new Map<AgentTunnel, () => void>()
  readonly #givenUp = new WeakSet<Session>()

  constructor(options: SessionBindsOptions) {
    this.#options = options
  }

  /** The tunnel of an id that a visitor carries. */
  find(id: string): AgentTunnel | undefined {
    return this.#byId.get(id)
  }

  /** Resolves when all binds have been tried. */
  async bindAll(): Promise<void> {
    this.cancelRebinds()
    await Promise.all(this.#wanted().map((tunnel) => this.bind(tunnel)))
  }

  /** Binds a tunnel at the current connection, and again at one that takes over meanwhile. */
  bind(tunnel: AgentTunnel): Promise<void> {
    const current = this.#binding.get(tunnel)
    if (current) return current
    this.#rebinds.get(tunnel)?.()
    this.#rebinds.delete(tunnel)
    const binding = this.#bindLatest(tunnel).finally(() => this.#binding.delete(tunnel))
    this.#binding.set(tunnel, binding)
    return binding
  }

  /** The ids by which the server knows the tunnels. */
  get ids(): string[] {
    return this.#wanted().flatMap((tunnel) => this.#options.bindOf(tunnel).got?.id ?? [])
  }

  get areAllOnline(): boolean {
    return this.#wanted().every((tunnel) => this.#options.bindOf(tunnel).isOnline)
  }

  /** The session is over. */
  offline(): void {
    this.cancelRebinds()
    for (const tunnel of this.#wanted()) this.#options.bindOf(tunnel).offline()
  }

  /** The session is given up: the next one gets new binds. Visitors who are on their way are served until it ends. */
  async giveUp(session: Session): Promise<void> {
    this.#givenUp.add(session)
    const { ids } = this
    const known = [...this.#byId.keys()]
    void session.ended.then(() => {
      for (const id of known) this.#byId.delete(id)
    })
    for (const tunnel of new Set(this.#byId.values())) this.#options.bindOf(tunnel).forget()
    this.cancelRebinds()
    await Promise.all(ids.map((id) => session.unbind(id)))
  }

  /** The tunnel is closed. */
  forget(tunnel: AgentTunnel): void {
    for (const id of this.#options.bindOf(tunnel).ids) this.#byId.delete(id)
    this.#rebinds.get(tunnel)?.()
    this.#rebinds.delete(tunnel)
  }

  /** The server stopped the tunnel; it is requested again after a while. */
  stopped(tunnel: AgentTunnel): void {
    this.forget(tunnel)
    this.#options.bindOf(tunnel).forget()
    this.#later(tunnel)
  }

  cancelRebinds(): void {
    for (const cancel of this.#rebinds.values()) cancel()
    this.#rebinds.clear()
  }

  async #bindLatest(tunnel: AgentTunnel): Promise<void> {
    let asked: Session | undefined
    for (;;) {
      const session = this.#options.session()
      if (!session || session === asked || !this.#isWanted(tunnel)) return
      asked = session
      await this.#bindAt(session, tunnel)
    }
  }

  async #bindAt(session: Session, tunnel: AgentTunnel): Promise<void> {
    const bind = this.#options.bindOf(tunnel)
    try {
      await tunnel.twinIsReady()
      const answer = await this.#ask(session, tunnel)
      // The tunnel was closed meanwhile, or the session given up.
      if (!this.#isWanted(tunnel) || this.#givenUp.has(session)) return await session.unbind(answer.id)
      for (const id of bind.ids) this.#byId.delete(id)
      const isNew = tunnel.online(bind, answer)
      for (const id of bind.ids) this.#byId.set(id, tunnel)
      this.#options.onBound?.(tunnel, isNew, session)
    } catch (error) {
      this.#notBound(session, tunnel, asFault(error))
    }
  }

  async #ask(session: Session, tunnel: AgentTunnel): Promise<BindAnswer> {
    const labels = tunnel.labelRequest()
    if (labels) {
      const id = await session.label(labels)
      return { id, url: '', proto: '', opts: {}, token: new Secret(''), tunnelId: id }
    }
    const request = tunnel.bindRequest(this.#options.bindOf(tunnel))
    if (!request) throw new Error('a tunnel has labels or asks for an address')
    return session.bind(request)
  }

  #notBound(session: Session, tunnel: AgentTunnel, fault: AgentFault): void {
    // The next session will request it again.
    if (session !== this.#options.session() || !this.#isWanted(tunnel)) return
    this.#options.bindOf(tunnel).offline()
    if (fault.code === 'refused' || fault.code === 'closed') this.#options.onRefused?.(tunnel, fault)
    if (this.#isWanted(tunnel)) this.#later(tunnel)
  }

  #later(tunnel: AgentTunnel): void {
    const waitMs = this.#options.hasFormer() ? REBIND_SOON_MS : REBIND_MS
    this.#rebinds.set(
      tunnel,
      this.#options.timers.after(waitMs, () => void this.bind(tunnel)),
    )
  }

  #isWanted(tunnel: AgentTunnel): boolean {
    return this.#options.tunnels.has(tunnel) && this.#options.wants(tunnel)
  }

  #wanted(): AgentTunnel[] {
    return [...this.#options.tunnels].filter((tunnel) => this.#options.wants(tunnel))
  }
}
