/**
 * One control process and its workers, which run the same version with the same settings.
 *
 * One thing: processes of one set start, replace each other and stop together.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { inTime } from '../../lib/in-time.ts'
import { type Logger, lostLines } from '../../lib/log/create-log.ts'
import type { ServerHandle } from '../../lib/net/early-listener.ts'
import { carry, carryToWorker } from '../config/carried-settings.ts'
import { type NodeLife, type OwnNode, ownNode } from '../config/own-node.ts'
import type { Listen } from '../config/parse-value.ts'
import type { Settings } from '../config/read-settings.ts'
import { ChildSlot, type Ending } from './child-slot.ts'
import { type HeldSockets, kindOf, type SlotSocket, type SocketName } from './held-sockets.ts'
import type { Launch } from './launch.ts'
import {
  type ChildRole,
  type ControlReady,
  type FromChild,
  type LoadedMessage,
  type StartMessage,
  SUPERVISION,
  type SupervisorFigures,
  type ToChild,
  type WorkerAddresses,
} from './process-messages.ts'
import { ReloadAcks } from './reload-acks.ts'
import type { BoundSocket } from './socket-handle.ts'

interface GenerationOptions extends Pick<StartMessage, 'folder' | 'ticketSecret' | 'handedPorts'> {
  readonly settings: Settings
  readonly launch: Launch
  readonly newId: (role: ChildRole) => string
  /** The node of all generations. */
  readonly life: NodeLife
  readonly sockets: Readonly<Record<ChildRole, HeldSockets<BoundSocket>>>
  readonly log: Logger
  readonly now: () => number
  /** How long children may take to confirm other settings, in milliseconds. */
  readonly answerMs: number | undefined
  /** Whether another generation serves while this one starts. */
  readonly isBeside: boolean
  /** Called when a control process listens at this path for the workers of all generations. */
  readonly controlListens: (path: string) => void
  /** Sends a message to a worker of any generation. */
  readonly tellWorker: (id: string, message: ToChild, handle?: ServerHandle) => void
  /** Called when a child is replaced. */
  readonly replaced: (role: ChildRole) => void
  readonly figures: () => SupervisorFigures
}

/** What children have reported once all are ready. */
export interface GenerationReport extends Omit<ControlReady, 'type' | 'role' | 'addresses'> {
  readonly addresses: ControlReady['addresses'] & WorkerAddresses
}

/** The first start of a child failed; the message says why. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure'
}

/** How much longer than the drain time workers may take to end, in milliseconds. */
const DRAIN_GRACE_MS = 10_000

/** How long the control process may take to end, in milliseconds: longer than any wait for a database. */
const CONTROL_STOP_MS = 40_000

/** How long the control process may take to give up the store to another, in milliseconds. */
const PAUSE_MS = 15_000

/** How long each step of an upgrade may take, in milliseconds. */
const STEP_MS = 120_000

/** How often the control process is told how many lines were lost, if that has changed, in milliseconds. */
const FIGURES_MS = 1000

function socketNames(role: ChildRole, { clusterListen }: Settings): readonly SocketName[] {
  if (role === 'control') return ['api', 'metrics']
  return clusterListen ? ['agent', 'ssh', 'https', 'http', 'cluster'] : ['agent', 'ssh', 'https', 'http']
}

/**
 * The control process starts first, until workers can attach to it. Workers attach, get their configuration, and are ready;
 * then the control process serves its API. Later each process is replaced when it ends, while the others go on. In an
 * upgrade a second set starts beside the first, and takes over from it.
 */
export class ProcessSet {
  readonly #options: GenerationOptions
  readonly #control: ChildSlot
  readonly #workers: readonly ChildSlot[]
  readonly #loaded = Promise.withResolvers<void>()
  readonly #started = Promise.withResolvers<GenerationReport>()
  readonly #notLoaded: Set<ChildSlot>
  readonly #answers: ReloadAcks
  readonly #figuresTimer: NodeJS.Timeout
  #settings: Settings
  #node: Promise<OwnNode> | undefined
  #version = ''
  /** Where the control process listens for workers; undefined while none does. */
  #controlPath: string | undefined
  /** Set once every worker has been ready. */
  #addresses: WorkerAddresses | undefined
  #isStarting = true
  #hasLeft = false
  #reportedLost = 0
  /** Called when the control process is paused, runs again, or has ended. */
  #onControlTurn: ((how: 'paused' | 'ready' | 'ended') => void) | undefined

  constructor(options: GenerationOptions) {
    this.#options = options
    this.#settings = options.settings
    this.#answers = new ReloadAcks(options.answerMs)
    this.#control = this.#seat('control', 0)
    this.#workers = Array.from({ length: options.settings.workers }, (_, slot) => this.#seat('worker', slot))
    this.#notLoaded = new Set(this.#seats)
    this.#figuresTimer = setInterval(() => this.#tellLost(), FIGURES_MS).unref()
    // They may fail before anything awaits them.
    this.#loaded.promise.catch(() => {})
    this.#started.promise.catch(() => {})
  }

  /** The version of the control process. */
  get version(): string {
    return this.#version
  }

  get settings(): Settings {
    return this.#settings
  }

  /** The ids of all children that run. */
  get ids(): readonly string[] {
    return this.#seats.filter(({ pid }) => pid !== undefined).map(({ id }) => id)
  }

  /** Starts all children; beside another generation they only load their code. Rejects with `StartFailure`. */
  async load(): Promise<void> {
    for (const seat of this.#seats) seat.fill()
    await inStep(this.#loaded.promise, 'loaded their code')
  }

  /** Resolves when all serve; rejects with `StartFailure`. */
  async serve(): Promise<GenerationReport> {
    this.#control.send({ type: 'go' })
    const report = await inStep(this.#started.promise, 'become ready')
    this.#isStarting = false
    // After a stop has begun, no child is replaced: the stop would not know the new one.
    if (!this.#hasLeft) for (const seat of this.#seats) seat.isKept = true
    return report
  }

  /** Ends all children at once. */
  async kill(): Promise<void> {
    clearInterval(this.#figuresTimer)
    await Promise.all(this.#seats.map((seat) => seat.kill()))
  }

  /** Resolves when all children use them, or with the ids of those that took too long. */
  use(settings: Settings): Promise<readonly string[]> {
    this.#settings = settings
    // Children that have not begun will begin with these settings.
    const begun = this.#seats.filter(({ pid, hasBegun }) => pid !== undefined && hasBegun)
    const answering = begun.filter(({ answersUse }) => answersUse !== false).map(({ id }) => id)
    return this.#answers.ask(answering, (round) => {
      for (const seat of begun) seat.send({ type: 'use', settings: this.#settingsFor(seat.role), round })
    })
  }

  /** Resolves when the control process has closed the store. The process stays, so that it can be resumed. */
  async pauseControl(): Promise<void> {
    const seat = this.#control
    seat.isKept = false
    this.#controlPath = undefined
    // A control process that is not ready has nothing to hand over, and may never become ready.
    if (!seat.isReady) return seat.kill()
    seat.isReady = false
    const turn = this.#nextControlTurn()
    seat.send({ type: 'pause' })
    const timer = setTimeout(() => void seat.kill(), PAUSE_MS)
    await turn
    clearTimeout(timer)
  }

  /** Resumes the control process, or starts another if it has ended; resolves with whether it serves. */
  async resumeControl(): Promise<boolean> {
    const seat = this.#control
    seat.isKept = true
    const turn = this.#nextControlTurn()
    if (seat.pid === undefined) seat.fill()
    else void this.#sendSockets(seat, (sockets) => ({ type: 'resume', sockets }))
    return (await turn) === 'ready'
  }

  /** Tells the workers where the control process listens. */
  controlAt(path: string): void {
    this.#controlPath = path
    for (const worker of this.#workers) worker.send({ type: 'control', path })
  }

  tellWorker(id: string, message: ToChild, handle?: ServerHandle): void {
    this.#workers.find((seat) => seat.id === id)?.send(message, handle)
  }

  /** From now on, children that end are not replaced. */
  leave(): void {
    this.#hasLeft = true
    clearInterval(this.#figuresTimer)
    for (const seat of this.#seats) seat.isKept = false
  }

  tellStopping(): void {
    this.#control.send({ type: 'stopping' })
  }

  tellDraining(): void {
    this.#control.send({ type: 'draining' })
  }

  /** Has the workers finish what is open, and end. */
  async endWorkers(): Promise<void> {
    const limitMs = this.#settings.drainTimeoutMs + DRAIN_GRACE_MS
    await Promise.all(this.#workers.map((seat) => seat.end('drain', limitMs)))
  }

  async endControl(): Promise<void> {
    await this.#control.end('stop', CONTROL_STOP_MS)
  }

  /** Lends sockets that nobody serves to workers that can serve them. */
  lend(): void {
    const { sockets, tellWorker } = this.#options
    const living = this.#workers.filter(({ isReady }) => isReady).map(({ id }) => id)
    for (const { name, slot, to, socket } of sockets.worker.lend(living)) {
      tellWorker(to, { type: 'lend', name, slot }, socket.handle)
    }
  }

  get #seats(): readonly ChildSlot[] {
    return [this.#control, ...this.#workers]
  }

  #seat(role: ChildRole, slot: number): ChildSlot {
    const { launch, newId, now } = this.#options
    return new ChildSlot({
      ...{ role, slot, launch, now },
      newId: () => newId(role),
      began: (seat) => void this.#begin(seat),
      heard: (seat, message) => this.#heard(seat, message),
      ended: (seat, ending) => this.#onEnded(seat, ending),
    })
  }

  async #begin(seat: ChildSlot): Promise<void> {
    const { folder, ticketSecret, handedPorts, figures } = this.#options
    const { id, slot, role } = seat
    this.#node ??= this.#settleNode()
    const node = await this.#node
    // The child may have ended and been replaced meanwhile.
    if (seat.id !== id) return
    const isSent = await this.#sendSockets(seat, (sockets) => ({
      type: 'start',
      settings: this.#settingsFor(role),
      // Workers wait for their control process anyway.
      isWaiting: this.#isBeside && role === 'control',
      ...{ id, slot, node, folder, ticketSecret, handedPorts, slots: this.#workers.length },
      linkPath: this.#linkPath(id),
      sockets,
    }))
    if (!isSent) return
    if (role === 'control') {
      seat.send({ type: 'figures', figures: figures() })
      if (this.#addresses) seat.send({ type: 'workers', addresses: this.#addresses })
    } else if (this.#controlPath !== undefined) seat.send({ type: 'control', path: this.#controlPath })
  }

  /** Chooses the ports that other nodes are told, even those left to the system, before any worker has its socket. */
  async #settleNode(): Promise<OwnNode> {
    const { life, sockets } = this.#options
    const settings = this.#settings
    const portOf = async (name: SocketName, address: Listen | null): Promise<number> => {
      if (address?.port !== 0) return 0
      // The worker that needs the port reports the error.
      return sockets.worker.portAt(name, socketIn(settings, name)).catch(() => 0)
    }
    return ownNode(life, settings, {
      cluster: await portOf('cluster', settings.clusterAddress),
      agent: await portOf('agent', settings.agentAddress),
    })
  }

  /** Sends `first` with the names of the child's sockets, and then the sockets; resolves with whether the child was still there. */
  async #sendSockets(seat: ChildSlot, first: (names: readonly SocketName[]) => ToChild): Promise<boolean> {
    const { id, slot, role } = seat
    const names = socketNames(role, this.#settings)
    const held = this.#options.sockets[role]
    const taken = await Promise.all(names.map((name) => this.#take(name, seat).catch(() => undefined)))
    // The child may have ended and been replaced meanwhile.
    if (seat.id !== id || seat.pid === undefined) {
      held.died(id)
      return false
    }
    const found = names.flatMap((name, index) => {
      const socket = taken[index]
      return socket ? [{ name, socket }] : []
    })
    seat.send(first(found.map(({ name }) => name)))
    seat.hasBegun = true
    for (const { name, socket } of found) {
      // The API's sockets are never early: a health check would have to wait for its answer instead of failing.
      const isEarly = role === 'worker' && !this.#isBeside && !held.isServed(name, slot, id)
      seat.send({ type: 'socket', name, address: socket.address, isEarly }, socket.handle)
    }
    return true
  }

  #take(name: SocketName, { slot, id, role }: ChildSlot): Promise<BoundSocket> {
    return this.#options.sockets[role].take(name, slot, id, socketIn(this.#settings, name))
  }

  /** Whether another generation still serves. */
  get #isBeside(): boolean {
    return this.#options.isBeside && this.#isStarting
  }

  #heard(seat: ChildSlot, message: FromChild): void {
    switch (message.type) {
      case 'loaded':
        this.#onLoaded(seat, message)
        return
      case 'using':
        this.#onUsing(seat, message)
        return
      case 'listening':
        this.#options.controlListens(this.#linkPath(seat.id))
        return
      case 'paused':
        this.#turnControl('paused')
        return
      case 'ready':
        seat.isReady = true
        if (message.role === 'worker') this.#onWorkerReady(seat, message.addresses)
        else this.#onControlReady(seat, message)
        return
      case 'openPort':
        void this.#openPort(seat, message)
        return
      case 'closePort':
        this.#options.sockets.worker.giveUp(`tcp ${message.port}`, seat.id)
        return
      case 'failed': // its seat keeps the reason until it has ended
    }
  }

  #onUsing({ role, id }: ChildSlot, { round, fault }: { readonly round: number; readonly fault?: string }): void {
    const isLate = this.#answers.answered(id, round, fault)
    // The child has logged a fault itself.
    if (isLate && fault === undefined)
      this.#options.log.info({ process: role, id }, 'process uses the reloaded settings now')
  }

  #onLoaded(seat: ChildSlot, { version, supervision, answersUse = false }: LoadedMessage): void {
    seat.answersUse = answersUse
    if (!answersUse) this.#answers.left(seat.id)
    if (!this.#isStarting && version !== this.#version) {
      const fields = { process: seat.role, id: seat.id, version, others: this.#version }
      this.#options.log.warn(fields, 'installed version differs from the running processes; upgrade the server')
    }
    if (seat.role === 'control' && this.#isStarting) this.#version = version
    if (supervision !== SUPERVISION && this.#isStarting) {
      const why = `version ${version} cannot be started by the running supervisor; restart the server`
      this.#loaded.reject(new StartFailure(why))
    }
    this.#notLoaded.delete(seat)
    if (this.#notLoaded.size === 0) this.#loaded.resolve()
  }

  #onWorkerReady(seat: ChildSlot, addresses: WorkerAddresses): void {
    const { log, sockets, tellWorker } = this.#options
    if (!this.#isStarting) log.info({ process: seat.role, id: seat.id, slot: seat.slot }, 'process is ready')
    for (const { name, slot, to } of sockets.worker.settle(seat.slot)) tellWorker(to, { type: 'unlend', name, slot })
    this.lend()
    if (this.#addresses || !this.#workers.every(({ isReady }) => isReady)) return
    this.#addresses = addresses
    this.#control.send({ type: 'workers', addresses })
  }

  #onControlReady({ role, id }: ChildSlot, { addresses, sshHostKey, firstStart }: ControlReady): void {
    if (!this.#isStarting) this.#options.log.info({ process: role, id }, 'process is ready')
    this.#turnControl('ready')
    // Otherwise the control process waits for the workers.
    if (this.#addresses) {
      this.#started.resolve({ addresses: { ...addresses, ...this.#addresses }, sshHostKey, firstStart })
    }
  }

  #onEnded(seat: ChildSlot, { id, code, signal, said, reason, livedMs, againInMs }: Ending): void {
    const { log, sockets, replaced, folder } = this.#options
    const { role, slot } = seat
    sockets[role].died(id)
    this.#answers.left(id)
    if (role === 'control') {
      this.#controlPath = undefined
      this.#turnControl('ended')
    }
    // Sockets that a killed process leaves behind.
    const link = this.#linkPath(id)
    for (const path of [link, `${link}.calls`, join(folder, `${id}.relay`)]) rmSync(path, { force: true })
    if (this.#isStarting) {
      const how = signal === null ? `code ${code}` : signal
      const failure = new StartFailure(reason ?? `the ${role} process ended at once (${said || how})`)
      this.#loaded.reject(failure)
      this.#started.reject(failure)
      return
    }
    const fields = { process: role, id, ...(role === 'worker' && { slot }), code, signal, reason }
    if (againInMs === undefined) {
      if (code !== 0) log.warn(fields, 'process ended before it had shut down')
      return
    }
    replaced(role)
    log.error(
      { ...fields, lived_ms: Math.round(livedMs), again_in_ms: againInMs },
      'process ended; starting a replacement',
    )
    this.lend()
    this.#control.send({ type: 'figures', figures: this.#options.figures() })
  }

  async #openPort(
    seat: ChildSlot,
    { request, port }: { readonly request: number; readonly port: number },
  ): Promise<void> {
    const { id, slot } = seat
    const held = this.#options.sockets.worker
    try {
      const name: SocketName = `tcp ${port}`
      const { handle, address } = await this.#take(name, seat)
      const isEarly = !this.#isBeside && !held.isServed(name, slot, id)
      if (seat.id === id && seat.pid !== undefined) seat.send({ type: 'port', request, address, isEarly }, handle)
      else held.died(id)
    } catch (error) {
      const { message, code = '' } = error as NodeJS.ErrnoException // only the system's errors reject
      seat.send({ type: 'port', request, error: { message, code } })
    }
  }

  #nextControlTurn(): Promise<'paused' | 'ready' | 'ended'> {
    return new Promise((resolve) => {
      this.#onControlTurn = resolve
    })
  }

  #turnControl(how: 'paused' | 'ready' | 'ended'): void {
    this.#onControlTurn?.(how)
    this.#onControlTurn = undefined
  }

  #tellLost(): void {
    const lost = lostLines(this.#options.log)
    if (lost === this.#reportedLost) return
    this.#reportedLost = lost
    this.#control.send({ type: 'figures', figures: this.#options.figures() })
  }

  /** The settings for a child. It logs JSON to the supervisor, which formats the lines. */
  #settingsFor(role: ChildRole) {
    const settings = { ...this.#settings, logFormat: 'json' as const }
    return role === 'control' ? carry(settings) : carryToWorker(settings)
  }

  #linkPath(id: string): string {
    return join(this.#options.folder, `${id}-link.sock`)
  }
}

function inStep<T>(promise: Promise<T>, what: string): Promise<T> {
  const late = (): Error => new StartFailure(`not all processes have ${what} within ${STEP_MS / 1000} seconds`)
  return inTime(promise, STEP_MS, late)
}

/** The address of each listening socket, from the settings. */
function socketIn(settings: Settings, name: SocketName): SlotSocket {
  const kind = kindOf(name)
  if (kind === 'tcp') return { host: settings.tcpListen, port: Number(name.slice('tcp '.length)) }
  const address = settings[`${kind}Listen` as const]
  if (!address) throw new Error('a node on its own has no socket for other nodes')
  return address
}
