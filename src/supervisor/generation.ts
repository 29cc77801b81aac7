/**
 * One control process and its workers, which run the same version with the same settings.
 *
 * The control process comes first, up to where workers can attach to it. They attach, get what is to be served, and are
 * ready; then it serves its API. Later each is replaced when it ends, and the others go on meanwhile. In an upgrade a second
 * generation starts beside the first, and takes over from it.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { carry, carryToWorker } from '../config/carried-settings.ts'
import { type NodeLife, type OwnNode, ownNode } from '../config/own-node.ts'
import type { Listen } from '../config/parse.ts'
import type { Settings } from '../config/read.ts'
import { type Logger, lostLines } from '../lib/log/log.ts'
import type { ServerHandle } from '../lib/net/early-listener.ts'
import type { HeldSockets, SocketName } from './held-sockets.ts'
import type { Launch } from './launch.ts'
import {
  type ChildRole,
  type ControlReady,
  type FromChild,
  type LoadedMessage,
  SUPERVISION,
  type SupervisorFigures,
  type ToChild,
  type WorkerAddresses,
} from './messages.ts'
import { type Ending, Seat } from './seat.ts'
import type { BoundSocket } from './socket-handle.ts'
import { placeIn } from './socket-places.ts'
import { UseAnswers } from './use-answers.ts'

export interface GenerationOptions {
  readonly settings: Settings
  readonly launch: Launch
  readonly newId: (role: ChildRole) => string
  /** The node that all generations are. */
  readonly life: NodeLife
  /** A folder of this server alone. */
  readonly folder: string
  /** What workers derive ticket keys from; for the life of the server, so that sessions resume at any of them. */
  readonly ticketSecret: Uint8Array
  /** Ports of TCP edges that a service manager handed in. */
  readonly handedPorts: readonly number[]
  readonly sockets: Readonly<Record<ChildRole, HeldSockets<BoundSocket>>>
  readonly log: Logger
  readonly now: () => number
  /** How long children may take to answer that they use other settings, in milliseconds. */
  readonly answerMs: number | undefined
  /** Whether another generation serves meanwhile. */
  readonly isBeside: boolean
  /** A control process is to be reached here, by the workers of all generations. */
  readonly controlListens: (path: string) => void
  /** Tells a worker of any generation. */
  readonly tellWorker: (id: string, message: ToChild, handle?: ServerHandle) => void
  /** A child was replaced. */
  readonly replaced: (role: ChildRole) => void
  readonly figures: () => SupervisorFigures
}

/** What children reported when all were ready. */
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

export class Generation {
  readonly #options: GenerationOptions
  readonly #control: Seat
  readonly #workers: readonly Seat[]
  readonly #loaded = Promise.withResolvers<void>()
  readonly #started = Promise.withResolvers<GenerationReport>()
  readonly #notLoaded: Set<Seat>
  readonly #answers: UseAnswers
  readonly #figuresTimer: NodeJS.Timeout
  #settings: Settings
  #node: Promise<OwnNode> | undefined
  #version = ''
  /** Where the control process listens for workers; undefined while none does. */
  #controlPath: string | undefined
  /** Known once every worker was ready. */
  #addresses: WorkerAddresses | undefined
  #isStarting = true
  #hasLeft = false
  #toldLost = 0
  /** Called when the control process is paused, runs again, or has ended. */
  #onControlTurn: ((how: 'paused' | 'ready' | 'ended') => void) | undefined

  constructor(options: GenerationOptions) {
    this.#options = options
    this.#settings = options.settings
    this.#answers = new UseAnswers(options.answerMs)
    this.#control = this.#seat('control', 0)
    this.#workers = Array.from({ length: options.settings.workers }, (_, slot) => this.#seat('worker', slot))
    this.#notLoaded = new Set(this.#seats)
    this.#figuresTimer = setInterval(() => this.#tellLost(), FIGURES_MS).unref()
    // Nobody may wait for them yet.
    this.#loaded.promise.catch(() => {})
    this.#started.promise.catch(() => {})
  }

  /** Of the code that the control process runs. */
  get version(): string {
    return this.#version
  }

  get settings(): Settings {
    return this.#settings
  }

  /** The ids of all children that are there. */
  get ids(): readonly string[] {
    return this.#seats.filter(({ pid }) => pid !== undefined).map(({ id }) => id)
  }

  /** Starts all children; beside another generation they only load their code. Rejects with `StartFailure`. */
  async load(): Promise<void> {
    for (const seat of this.#seats) seat.fill()
    await inTime(this.#loaded.promise, 'loaded its code')
  }

  /** Resolves when all serve; rejects with `StartFailure`. */
  async serve(): Promise<GenerationReport> {
    this.#control.send({ type: 'go' })
    const report = await inTime(this.#started.promise, 'become ready')
    this.#isStarting = false
    // A stop that began meanwhile would not know those that take the place of who ends.
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
    // Whoever has not begun will begin with them.
    const told = this.#seats.filter(({ pid, hasBegun }) => pid !== undefined && hasBegun)
    const answering = told.filter(({ answersUse }) => answersUse !== false).map(({ id }) => id)
    return this.#answers.ask(answering, (round) => {
      for (const seat of told) seat.send({ type: 'use', settings: this.#carried(seat.role), round })
    })
  }

  /** Resolves when the control process has closed the store. It waits, to go on if it must. */
  async pauseControl(): Promise<void> {
    const seat = this.#control
    seat.isKept = false
    this.#controlPath = undefined
    // One that is not ready has nothing to hand over, and perhaps never will.
    if (!seat.isReady) return seat.kill()
    seat.isReady = false
    const turn = this.#nextControlTurn()
    seat.send({ type: 'pause' })
    const timer = setTimeout(() => void seat.kill(), PAUSE_MS)
    await turn
    clearTimeout(timer)
  }

  /** The control process goes on; another takes its place if it cannot. Gives whether it serves. */
  async resumeControl(): Promise<boolean> {
    const seat = this.#control
    seat.isKept = true
    const turn = this.#nextControlTurn()
    if (seat.pid === undefined) seat.fill()
    else void this.#sendSockets(seat, (sockets) => ({ type: 'resume', sockets }))
    return (await turn) === 'ready'
  }

  /** The control process is to be reached here. */
  controlAt(path: string): void {
    this.#controlPath = path
    for (const worker of this.#workers) worker.send({ type: 'control', path })
  }

  tellWorker(id: string, message: ToChild, handle?: ServerHandle): void {
    this.#workers.find((seat) => seat.id === id)?.send(message, handle)
  }

  /** Nobody who ends is replaced from now on. */
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

  /** The workers finish what is open. */
  async endWorkers(): Promise<void> {
    const limitMs = this.#settings.drainTimeoutMs + DRAIN_GRACE_MS
    await Promise.all(this.#workers.map((seat) => seat.end('drain', limitMs)))
  }

  async endControl(): Promise<void> {
    await this.#control.end('stop', CONTROL_STOP_MS)
  }

  /** Gives sockets that nobody serves to workers that can. */
  lend(): void {
    const { sockets, tellWorker } = this.#options
    const living = this.#workers.filter(({ isReady }) => isReady).map(({ id }) => id)
    for (const { name, slot, to, socket } of sockets.worker.lend(living)) {
      tellWorker(to, { type: 'lend', name, slot }, socket.handle)
    }
  }

  get #seats(): readonly Seat[] {
    return [this.#control, ...this.#workers]
  }

  #seat(role: ChildRole, slot: number): Seat {
    const { launch, newId, now } = this.#options
    return new Seat({
      ...{ role, slot, launch, now },
      newId: () => newId(role),
      began: (seat) => void this.#begin(seat),
      heard: (seat, message) => this.#heard(seat, message),
      ended: (seat, ending) => this.#onEnded(seat, ending),
    })
  }

  async #begin(seat: Seat): Promise<void> {
    const { folder, ticketSecret, handedPorts, figures } = this.#options
    const { id, slot, role } = seat
    this.#node ??= this.#settleNode()
    const node = await this.#node
    // The child may have ended meanwhile, and another have its place.
    if (seat.id !== id) return
    const isSent = await this.#sendSockets(seat, (sockets) => ({
      type: 'start',
      settings: this.#carried(role),
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

  /** Other nodes are told ports, also those that the system chooses, before any worker has its socket. */
  async #settleNode(): Promise<OwnNode> {
    const { life, sockets } = this.#options
    const settings = this.#settings
    const portOf = async (name: SocketName, address: Listen | null): Promise<number> => {
      if (address?.port !== 0) return 0
      // What cannot be had is told by the worker that needs it.
      return sockets.worker.portAt(name, placeIn(settings, name)).catch(() => 0)
    }
    return ownNode(life, settings, {
      cluster: await portOf('cluster', settings.clusterAddress),
      agent: await portOf('agent', settings.agentAddress),
    })
  }

  /** Sends `first` with the names of the child's sockets, and them after it. */
  async #sendSockets(seat: Seat, first: (names: readonly SocketName[]) => ToChild): Promise<boolean> {
    const { id, slot, role } = seat
    const names = socketNames(role, this.#settings)
    const held = this.#options.sockets[role]
    const taken = await Promise.all(names.map((name) => this.#take(name, seat).catch(() => undefined)))
    // The child may have ended meanwhile, and another have its place.
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
      // Whoever asks the API whether the server is ready would have to wait for the answer.
      const isEarly = role === 'worker' && !this.#isBeside && !held.isServed(name, slot, id)
      seat.send({ type: 'socket', name, address: socket.address, isEarly }, socket.handle)
    }
    return true
  }

  #take(name: SocketName, { slot, id, role }: Seat): Promise<BoundSocket> {
    return this.#options.sockets[role].take(name, slot, id, placeIn(this.#settings, name))
  }

  /** Whether another generation serves still. */
  get #isBeside(): boolean {
    return this.#options.isBeside && this.#isStarting
  }

  #heard(seat: Seat, message: FromChild): void {
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

  #onUsing({ role, id }: Seat, { round, fault }: { readonly round: number; readonly fault?: string }): void {
    const isLate = this.#answers.answered(id, round, fault)
    // A fault is in its own log.
    if (isLate && fault === undefined)
      this.#options.log.info({ process: role, id }, 'process uses the reloaded settings now')
  }

  #onLoaded(seat: Seat, { version, supervision, answersUse = false }: LoadedMessage): void {
    seat.answersUse = answersUse
    if (!answersUse) this.#answers.left(seat.id)
    if (!this.#isStarting && version !== this.#version) {
      const fields = { process: seat.role, id: seat.id, version, others: this.#version }
      this.#options.log.warn(fields, 'what is on disk has another version than the other processes; upgrade the server')
    }
    if (seat.role === 'control' && this.#isStarting) this.#version = version
    if (supervision !== SUPERVISION && this.#isStarting) {
      const why = `version ${version} cannot be started by the supervisor that runs; restart the server`
      this.#loaded.reject(new StartFailure(why))
    }
    this.#notLoaded.delete(seat)
    if (this.#notLoaded.size === 0) this.#loaded.resolve()
  }

  #onWorkerReady(seat: Seat, addresses: WorkerAddresses): void {
    const { log, sockets, tellWorker } = this.#options
    if (!this.#isStarting) log.info({ process: seat.role, id: seat.id, slot: seat.slot }, 'process is ready')
    for (const { name, slot, to } of sockets.worker.settle(seat.slot)) tellWorker(to, { type: 'unlend', name, slot })
    this.lend()
    if (this.#addresses || !this.#workers.every(({ isReady }) => isReady)) return
    this.#addresses = addresses
    this.#control.send({ type: 'workers', addresses })
  }

  #onControlReady({ role, id }: Seat, { addresses, sshHostKey, firstStart }: ControlReady): void {
    if (!this.#isStarting) this.#options.log.info({ process: role, id }, 'process is ready')
    this.#turnControl('ready')
    // The control process waits for them.
    if (this.#addresses) {
      this.#started.resolve({ addresses: { ...addresses, ...this.#addresses }, sshHostKey, firstStart })
    }
  }

  #onEnded(seat: Seat, { id, code, signal, said, reason, livedMs, againInMs }: Ending): void {
    const { log, sockets, replaced, folder } = this.#options
    const { role, slot } = seat
    sockets[role].died(id)
    this.#answers.left(id)
    if (role === 'control') {
      this.#controlPath = undefined
      this.#turnControl('ended')
    }
    // What a process that was killed leaves behind.
    const left = [this.#linkPath(id), join(folder, `${id}.relay`), join(folder, `${id}.peers`)]
    for (const path of left) rmSync(path, { force: true })
    if (this.#isStarting) {
      const how = signal === null ? `code ${code}` : signal
      const failure = new StartFailure(reason ?? `the ${role} process ended at once (${said || how})`)
      this.#loaded.reject(failure)
      this.#started.reject(failure)
      return
    }
    const fields = { process: role, id, ...(role === 'worker' && { slot }), code, signal, reason }
    if (againInMs === undefined) {
      if (code !== 0) log.warn(fields, 'process ended before it had finished')
      return
    }
    replaced(role)
    log.error(
      { ...fields, lived_ms: Math.round(livedMs), again_in_ms: againInMs },
      'process ended; another takes its place',
    )
    this.lend()
    this.#control.send({ type: 'figures', figures: this.#options.figures() })
  }

  async #openPort(seat: Seat, { request, port }: { readonly request: number; readonly port: number }): Promise<void> {
    const { id, slot } = seat
    const held = this.#options.sockets.worker
    try {
      const name: SocketName = `tcp ${port}`
      const { handle, address } = await this.#take(name, seat)
      const isEarly = !this.#isBeside && !held.isServed(name, slot, id)
      if (seat.id === id && seat.pid !== undefined) seat.send({ type: 'port', request, address, isEarly }, handle)
      else held.died(id)
    } catch (error) {
      const { message, code = '' } = error as NodeJS.ErrnoException // of the system: nothing else rejects
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
    if (lost === this.#toldLost) return
    this.#toldLost = lost
    this.#control.send({ type: 'figures', figures: this.#options.figures() })
  }

  /** Children print to us, so that they need not know what a terminal is: we decide how lines look. */
  #carried(role: ChildRole) {
    const settings = { ...this.#settings, logFormat: 'json' as const }
    return role === 'control' ? carry(settings) : carryToWorker(settings)
  }

  #linkPath(id: string): string {
    return join(this.#options.folder, `${id}-link.sock`)
  }
}

async function inTime<T>(promise: Promise<T>, what: string): Promise<T> {
  const late = Promise.withResolvers<never>()
  const failure = new StartFailure(`not all processes have ${what} within ${STEP_MS / 1000} seconds`)
  const timer = setTimeout(() => late.reject(failure), STEP_MS)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
