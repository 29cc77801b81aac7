/** One client's session over SSH: its command, its forwards and their tunnels, and its end. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { timestamp } from '../../lib/clock.ts'
import { printable } from '../../lib/text/printable.ts'
import { refusals } from '../../model/agent-errors.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import { Refusal } from '../../model/errors.ts'
import type { AgentCommand, PresentSession } from '../../model/presence.ts'
import { BindRefusal } from '../tunnel/interfaces.ts'
import { LabelIds } from '../tunnel/label-ids.ts'
import type { LiveSession, Tunnel } from '../tunnel/session-types.ts'
import { TunnelTable } from '../tunnel/tunnel-table.ts'
import { readCommand, type SshTunnelCommand } from './forward-command.ts'
import { type ForwardAddress, planOf } from './forward-plan.ts'
import { type Forward, Forwards } from './forwards.ts'
import { SshDisplay } from './request-display.ts'
import type { SshConnectionOptions } from './ssh-connection.ts'
import { helpText } from './ssh-help.ts'
import type { ForwardReply } from './ssh-link.ts'
import type { Asked, SshTerminal } from './ssh-terminal.ts'

interface SshSessionOptions extends Pick<SshConnectionOptions, 'link' | 'peer' | 'context'> {
  readonly credentialId: string
  /** The SSH certificate that the client logged in with, if it used one. */
  readonly certificateId?: string | undefined
  readonly user: string
  /** The command that its certificate prescribes, whatever the client asks for. */
  readonly forced?: string | undefined
}

/** The most characters of the client's software name that are kept. */
const MAX_SAID = 255

export class SshSession implements LiveSession {
  readonly id: string
  readonly credentialId: string
  readonly certificateId: string | undefined
  readonly present: PresentSession
  readonly tunnels = new TunnelTable()
  readonly #options: SshSessionOptions
  readonly #labelIds: LabelIds
  readonly #forwards = new Forwards()
  readonly #display: SshDisplay
  #terminal: SshTerminal | undefined
  #command: SshTunnelCommand | undefined
  #overdue: NodeJS.Timeout | undefined
  #isEnded = false
  #isLeaving = false

  constructor(options: SshSessionOptions) {
    const { link, peer, context, credentialId } = options
    const startedAt = context.now()
    this.id = context.ids.next('ts_')
    this.credentialId = credentialId
    this.certificateId = options.certificateId
    this.#options = options
    this.present = {
      id: this.id,
      agentVersion: link.software.slice(0, MAX_SAID).toWellFormed(),
      credentialId,
      ip: peer.ip,
      metadata: '',
      os: '',
      region: context.online.region,
      startedAt: timestamp(startedAt),
      transport: 'ssh',
    }
    this.#labelIds = new LabelIds(this.id, { isResumed: false, former: [] })
    this.#display = new SshDisplay({
      region: context.online.region,
      requests: context.online.requests,
      figures: () => this,
      measure: () => link.roundTrips.measure(),
    })
    context.online.registry.addSession(this)
    this.#awaitRequests()
    context.log.info(
      {
        session: this.id,
        credential: credentialId,
        ...(this.certificateId !== undefined && { certificate: this.certificateId }),
        peer: peer.ip,
        agent: printable(this.present.agentVersion),
      },
      'agent online',
    )
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  get connections(): number {
    return this.#options.link.channels
  }

  get bytesIn(): number {
    return this.#options.link.bytesIn
  }

  get bytesOut(): number {
    return this.#options.link.bytesOut
  }

  get latencyMs(): number | undefined {
    return this.#options.link.roundTrips.lastMs
  }

  async proveAlive(): Promise<void> {
    const { link, context } = this.#options
    if (await link.isAlive(context.limits.signOfLifeMs)) return
    this.left('its client gave no sign of life when another agent asked for its address')
    link.drop('it gave no sign of life')
  }

  open(tunnel: Tunnel, { ip, port }: DialRequest): Promise<ByteStream | DialFault> {
    const address = this.#forwards.addressOf(tunnel.id)
    if (!address) return Promise.resolve(new DialFault('offline', 'the client does not listen for the tunnel'))
    this.#display.connected()
    return this.#options.link.open(address, { ip, port })
  }

  /** D44: an SSH client can be stopped, but not restarted or updated. */
  async command(command: AgentCommand): Promise<void> {
    if (command !== 'stop') {
      throw new Refusal('SSH_COMMAND_UNSUPPORTED', `an SSH session cannot be told to ${command}; it can be stopped`)
    }
    this.end('it was stopped through the API')
    this.#options.context.log.info({ session: this.id, command }, 'agent took a command')
  }

  tellStopped(tunnel: Tunnel, { message, ngrok }: { readonly message: string; readonly ngrok: number }): void {
    this.#forwards.deleteOf(tunnel)
    this.#display.remove(tunnel)
    const refusal = new BindRefusal(ngrok, `A tunnel was stopped: ${message}.`)
    if (this.tunnels.size === 0) this.#fail(refusal)
    else this.#display.note(refusalText(refusal))
  }

  end(reason: string): void {
    this.#display.close()
    this.left(reason)
    this.#options.link.disconnect(`The session was ended: ${reason}.`)
  }

  /** The connection is over: frees everything that the session held. */
  left(reason: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    clearTimeout(this.#overdue)
    this.#display.close()
    const { online, log } = this.#options.context
    online.registry.removeSession(this)
    const { bytesIn, bytesOut } = this
    log.info({ session: this.id, reason: printable(reason), bytesIn, bytesOut }, 'agent offline')
  }

  /** The client wants us to listen. */
  forward(asked: ForwardAddress, reply: ForwardReply): void {
    const { forwards: max } = this.#options.context.limits
    const isTwice = this.#forwards.has(asked)
    if (this.#forwards.size >= max || isTwice) {
      reply.reject()
      this.#fail(isTwice ? refusals.sameForward(asked.port) : refusals.tooManyForwards(max))
      return
    }
    const forward: Forward = { asked, reply }
    this.#forwards.add(forward)
    if (this.#command) void this.#start(forward, this.#command)
    else setTimeout(() => this.#promise(forward), this.#options.context.limits.forwardMs).unref()
  }

  cancel(address: ForwardAddress): void {
    const forward = this.#forwards.at(address)
    if (!forward) return
    forward.isCancelled = true
    this.#forwards.delete(forward)
    if (!forward.tunnel) return
    this.#display.remove(forward.tunnel)
    this.#options.context.online.unbind(forward.tunnel)
    if (this.#forwards.size === 0) this.#awaitRequests()
  }

  terminal(terminal: SshTerminal): void {
    terminal.serve({
      asked: (asked) => this.#asked(terminal, asked),
      quit: () => {
        if (terminal === this.#terminal) this.#quit()
      },
      resized: () => {
        if (terminal === this.#terminal) this.#display.redraw()
      },
    })
  }

  /** Tells the client that something is not served; the session goes on. */
  complain(refusal: BindRefusal): void {
    this.#display.note(refusalText(refusal))
  }

  #asked(terminal: SshTerminal, asked: Asked): void {
    if (this.#terminal) {
      terminal.complain(`${refusalText(refusals.oneCommand())}\n`)
      terminal.exit(1)
      return
    }
    this.#terminal = terminal
    const { user, forced } = this.#options
    const isOldVersion = /^v\d+$/.test(user) && user !== 'v2'
    if (isOldVersion) this.#fail(refusals.unknownVersion(user))
    else if (forced !== undefined) this.#run(terminal, forced)
    else if ('shell' in asked) this.#fail(refusals.noCommand())
    else if ('subsystem' in asked) this.#fail(refusals.unknownCommand(asked.subsystem))
    else this.#run(terminal, asked.exec)
  }

  #run(terminal: SshTerminal, text: string): void {
    const command = readCommand(text)
    if (command instanceof BindRefusal) {
      this.#fail(command)
      return
    }
    if ('help' in command) {
      terminal.print(helpText(command.help))
      this.#leave(0, { logged: 'it asked for help', shownText: 'The help was printed. Nothing is forwarded.' })
      return
    }
    this.#command = command
    this.#display.show(terminal)
    for (const forward of [...this.#forwards]) void this.#start(forward, command)
  }

  /** Accepts a forward that nothing is known of yet, if the command has not come. One that is refused later ends the session. */
  #promise(forward: Forward): void {
    if (forward.isCancelled) forward.reply.reject()
    else if (!this.#command && !this.#isEnded) forward.reply.accept(this.#forwards.announce(forward))
  }

  async #start(forward: Forward, command: SshTunnelCommand): Promise<void> {
    const { context } = this.#options
    try {
      const tunnel = await this.#serve(forward.asked, command)
      if (tunnel instanceof BindRefusal) {
        forward.reply.reject()
        this.#forwards.delete(forward)
        if (!this.#isEnded && !forward.isCancelled) this.#fail(tunnel)
        return
      }
      if (this.#isEnded || forward.isCancelled) {
        context.online.unbind(tunnel)
        forward.reply.reject()
        return
      }
      this.#begin(forward, tunnel)
    } catch (error) {
      context.log.error({ session: this.id, error }, 'forward of an SSH client failed')
      this.end('the server failed; its log says why')
    }
  }

  async #serve(address: ForwardAddress, command: SshTunnelCommand): Promise<Tunnel | BindRefusal> {
    const { online } = this.#options.context
    const plan = planOf(address, command)
    if (plan instanceof BindRefusal) return plan
    if ('labels' in plan) return online.startLabels(this, plan.labels, this.#labelIds)
    const bound = await online.bind(this, plan.bind)
    return bound instanceof BindRefusal ? bound : bound.tunnel
  }

  #begin(forward: Forward, tunnel: Tunnel): void {
    clearTimeout(this.#overdue)
    forward.reply.accept(this.#forwards.begin(forward, tunnel))
    this.#display.add(tunnel)
  }

  /** Tells the client what is wrong, and ends the session. */
  #fail(refusal: BindRefusal): void {
    if (this.#isLeaving || this.#isEnded) return
    const text = refusalText(refusal)
    this.#display.close()
    this.#terminal?.complain(`${text}\n`)
    // The log does not get the text, which may quote a password from a malformed command.
    this.#leave(1, { logged: `it was refused with ERR_NGROK_${refusal.ngrok}`, shownText: text })
  }

  /** `logged` is for the log, which may name no secret; `told` is what the client shows. */
  #leave(status: number, { logged, shownText }: { readonly logged: string; readonly shownText: string }): void {
    if (this.#isLeaving) return
    this.#isLeaving = true
    const terminal = this.#terminal
    this.left(logged)
    if (!terminal) {
      this.#options.link.disconnect(shownText)
      return
    }
    terminal.exit(status)
    // Later: clients that get a disconnect before they have read the exit status report a broken connection.
    setTimeout(() => this.#options.link.disconnect(shownText), this.#options.context.limits.refusalMs).unref()
  }

  #quit(): void {
    if (this.#isLeaving || this.#isEnded) return
    this.#display.close()
    this.#leave(0, { logged: 'its client left', shownText: 'You ended the session. Nothing is forwarded any more.' })
  }

  /** Ends the session of a client that sends no command or no forward in time, because it takes up a place. */
  #awaitRequests(): void {
    const { requestMs } = this.#options.context.limits
    clearTimeout(this.#overdue)
    this.#overdue = setTimeout(() => {
      const seconds = requestMs / 1000
      if (!this.#command) this.#fail(refusals.commandMissing(seconds))
      else if (this.#forwards.size === 0) this.#fail(refusals.forwardMissing(seconds))
    }, requestMs)
    this.#overdue.unref()
  }
}

/** A refusal as clients show it. */
export function refusalText({ message, ngrok }: BindRefusal): string {
  return `${message} (ERR_NGROK_${ngrok})`
}
