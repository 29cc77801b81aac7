/** The supervisor: holds the listening sockets and keeps the processes that serve them running, and does nothing else. */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { IdSource } from '../../lib/ids.ts'
import { type Logger, lostLines } from '../../lib/log/create-log.ts'
import type { HandedOpen } from '../config/listeners.ts'
import { newNode } from '../config/own-node.ts'
import type { Settings } from '../config/read-settings.ts'
import { HeldSockets, type SocketName } from './held-sockets.ts'
import type { Launch } from './launch.ts'
import { makeOwnFolder } from './own-folder.ts'
import type { ChildRole } from './process-messages.ts'
import { type GenerationReport, ProcessSet } from './process-set.ts'
import { type BoundSocket, bindSocket } from './socket-handle.ts'
import { UpgradeFailure, type UpgradeStep, upgrade } from './upgrade-server.ts'

export interface SupervisorOptions {
  readonly log: Logger
  readonly launch: Launch
  /** Sockets that a service manager handed in. */
  readonly handed: Pick<HandedOpen<BoundSocket>, 'named' | 'tcp'>
  readonly now?: () => number
  /** How long children may take to confirm other settings, in milliseconds; shorter is for tests. */
  readonly answerMs?: number
}

interface Upgraded {
  readonly from: string
  readonly to: string
  /** The processes that serve now. */
  readonly ids: readonly string[]
}

const TICKET_SECRET_BYTES = 32

/** Starts all processes; when one cannot start, ends all and rejects with `StartFailure`. */
export async function startSupervisor(settings: Settings, options: SupervisorOptions) {
  const supervisor = new Supervisor(settings, options)
  const report = await supervisor.start()
  return {
    ...report,
    folder: supervisor.folder,
    use: (next: Settings) => supervisor.use(next),
    upgrade: supervisor.upgrade.bind(supervisor),
    version: () => supervisor.version,
    stop: () => supervisor.stop(),
  }
}

class Supervisor {
  /** A folder of this server alone. */
  readonly folder: string
  readonly #options: SupervisorOptions
  readonly #sockets: Readonly<Record<ChildRole, HeldSockets<BoundSocket>>>
  readonly #life = newNode({ ids: new IdSource({ now: Date.now }), now: Date.now })
  readonly #ticketSecret = randomBytes(TICKET_SECRET_BYTES)
  readonly #restarts: Record<ChildRole, number> = { control: 0, worker: 0 }
  readonly #counts: Record<ChildRole, number> = { control: 0, worker: 0 }
  /** Generations with processes: the one that serves, one that is about to take over, and those that are finishing. */
  readonly #generations = new Set<ProcessSet>()
  #current: ProcessSet
  #isUpgrading = false
  #isStopping = false

  constructor(settings: Settings, options: SupervisorOptions) {
    this.#options = options
    this.folder = makeOwnFolder(settings.dataDir)
    process.once('exit', this.#removeFolder)
    const given = handedSockets(options.handed)
    this.#sockets = {
      control: new HeldSockets({ open: bindSocket, isSpread: false, handed: given.control }),
      worker: new HeldSockets({ open: bindSocket, isSpread: true, handed: given.worker }),
    }
    this.#current = this.#generation(settings, { isBeside: false })
  }

  /** The version that serves. */
  get version(): string {
    return this.#current.version
  }

  async start(): Promise<GenerationReport> {
    try {
      const report = this.#current.serve()
      await Promise.all([this.#current.load(), report])
      return await report
    } catch (error) {
      this.#sockets.worker.close()
      this.#sockets.control.close()
      await this.#current.kill()
      this.#clean()
      throw error
    }
  }

  /** Resolves when all processes use the settings, or with the ids of those that took too long; these use them once they can. */
  use(settings: Settings): Promise<readonly string[]> {
    return this.#current.use(settings)
  }

  /** Starts the installed version beside the running one, and switches to it; rejects with `UpgradeFailure` if that fails. */
  async upgrade(settings: Settings, onStep: (step: UpgradeStep) => void): Promise<Upgraded> {
    if (this.#isStopping) throw new UpgradeFailure('the server is stopping')
    if (this.#isUpgrading) throw new UpgradeFailure('an upgrade is under way already; wait for it to end')
    if (settings.workers === 0) throw new UpgradeFailure('`workers` is 0 now, which needs a restart of the server')
    this.#isUpgrading = true
    const former = this.#current
    const next = this.#generation(settings, { isBeside: true })
    try {
      const isStopping = () => this.#isStopping
      await upgrade({ from: former, to: next, log: this.#options.log, onStep, isStopping })
      this.#current = next
      this.#retire(former, next)
      return { from: former.version, to: next.version, ids: next.ids }
    } catch (error) {
      if (!this.#isStopping) this.#generations.delete(next)
      throw error
    } finally {
      this.#isUpgrading = false
    }
  }

  /** Waits until load balancers have noticed, lets the workers finish what is open, and then ends the control process. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#current.tellStopping()
    const { stopDelayMs } = this.#current.settings
    if (stopDelayMs > 0) await pause(stopDelayMs)
    const all = [...this.#generations]
    for (const each of all) each.leave()
    this.#current.tellDraining()
    // Closed so that visitors are refused: an open socket here would make them wait for nothing.
    this.#sockets.worker.close()
    this.#sockets.control.close()
    await Promise.all(all.map((each) => each.endWorkers()))
    await Promise.all(all.map((each) => each.endControl()))
    this.#clean()
  }

  /** Ends the generation that served until now, while the next one serves. */
  #retire(former: ProcessSet, next: ProcessSet): void {
    const { log } = this.#options
    former.leave()
    for (const role of ['control', 'worker'] as const) this.#sockets[role].retire(former.ids)
    next.lend()
    void Promise.all([former.endControl(), former.endWorkers()]).then(() => {
      this.#generations.delete(former)
      if (!this.#isStopping) log.info({ version: former.version }, 'the processes before the upgrade have ended')
    })
  }

  #generation(settings: Settings, { isBeside }: { readonly isBeside: boolean }): ProcessSet {
    const { log, launch, handed, now = () => performance.now(), answerMs } = this.#options
    const generation = new ProcessSet({
      ...{ settings, launch, log, now, isBeside, answerMs },
      ...{ life: this.#life, folder: this.folder, sockets: this.#sockets, ticketSecret: this.#ticketSecret },
      handedPorts: [...handed.tcp.keys()],
      newId: (role) => `${role === 'control' ? 'c' : 'w'}${++this.#counts[role]}`,
      replaced: (role) => void this.#restarts[role]++,
      figures: () => ({ restarts: { ...this.#restarts }, lostLines: lostLines(log) }),
      controlListens: (path) => {
        for (const each of this.#generations) each.controlAt(path)
      },
      tellWorker: (...given) => {
        for (const each of this.#generations) each.tellWorker(...given)
      },
    })
    this.#generations.add(generation)
    return generation
  }

  readonly #removeFolder = (): void => rmSync(this.folder, { recursive: true, force: true })

  #clean(): void {
    process.off('exit', this.#removeFolder)
    this.#removeFolder()
  }
}

function handedSockets({ named, tcp }: SupervisorOptions['handed']) {
  const control = new Map<SocketName, BoundSocket>()
  const worker = new Map<SocketName, BoundSocket>()
  for (const [name, socket] of named) (name === 'api' || name === 'metrics' ? control : worker).set(name, socket)
  for (const [port, socket] of tcp) worker.set(`tcp ${port}`, socket)
  return { control, worker }
}
