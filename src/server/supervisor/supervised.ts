/** What every child of the supervisor does: it obeys the messages on its channel, and ends when the supervisor does. */
import { rmSync } from 'node:fs'
import { Descriptors } from '../../lib/files/descriptors.ts'
import { createLog, flushLog, type Logger } from '../../lib/log/create-log.ts'
import type { ServerHandle } from '../../lib/net/early-listener.ts'
import { carriedSettings } from '../config/carried-settings.ts'
import type { Settings } from '../config/read-settings.ts'
import { ChildSockets } from './child-sockets.ts'
import { type FromChild, type StartMessage, SUPERVISION, type ToChild, type UseMessage } from './process-messages.ts'

/** The channel to the supervisor: `process`, in a child. */
interface ParentChannel {
  on(event: 'message', heard: (message: ToChild, handle: ServerHandle | undefined) => void): unknown
  send(message: FromChild, sent: () => void): void
  /** Whether the supervisor is still there. */
  isConnected(): boolean
}

export interface ChildParts {
  readonly parent: ParentChannel
  readonly exit: (code: number) => void
  readonly onExit: (run: () => void) => void
  /** Logs what Node would print itself. */
  readonly logProcess: (log: Logger) => void
  /** The version of the code that runs here. */
  readonly version: string
  /** Says in one line why the child did not start. */
  readonly fault: (error: unknown, settings: Settings) => string
}

/** What a child of either role begins with. */
export interface ChildBeginning {
  readonly start: StartMessage
  readonly settings: Settings
  readonly log: Logger
  readonly descriptors: Descriptors
  readonly sockets: ChildSockets
  readonly send: (message: FromChild) => void
}

/** What runs in a child that has started. */
export interface RunningChild {
  use(settings: Settings): void
  drain?(): Promise<void>
  /** Ends so that another process can take over soon; it may be run again. */
  pause?(): Promise<void>
  stop(): Promise<void>
}

/** The part of a child's work that depends on its role. */
interface ChildWork<Start, Started> {
  /** Loads its code, which takes long; connections wait meanwhile. */
  load(): Promise<Start>
  /** Resolves when it is ready; `start` is the code that was loaded. */
  run(start: Start): Promise<Started>
  /** What it reports when it is ready. */
  ready(started: Started): FromChild
  /** Handles messages for this role only. */
  receive(message: ToChild): void
}

/** How long writing the last log lines may take, in milliseconds. */
const LAST_LINES_MS = 1000

/** Runs until the supervisor ends it. */
export function runSupervised<Start, Started extends RunningChild>(
  parts: ChildParts,
  begin: (beginning: ChildBeginning) => ChildWork<Start, Started>,
): void {
  const { parent, exit } = parts
  const send = (message: FromChild): void => parent.send(message, () => {})
  let life: ChildLife<Start, Started> | undefined
  parent.on('message', (message, handle) => {
    if (message.type === 'start') {
      life = new ChildLife(message, parts, begin, send)
      // A supervisor that was killed cannot remove its folder.
      parts.onExit(() => parent.isConnected() || rmSync(message.folder, { recursive: true, force: true }))
    } else if (life) life.receive(message, handle)
    else if (message.type === 'drain' || message.type === 'stop') exit(0)
  })
}

class ChildLife<Start, Started extends RunningChild> {
  readonly #parts: ChildParts
  readonly #beginning: ChildBeginning
  readonly #work: ChildWork<Start, Started>
  /** Resolves when it may start. */
  readonly #may = Promise.withResolvers<void>()
  readonly #loading: Promise<Start>
  /** How many sockets have not come yet. */
  #missing: number
  #running: RunningChild | undefined
  /** Settings that came after the start. */
  #newer: Settings | undefined
  /** The round to confirm once they are in use. */
  #round: number | undefined
  #taken: Promise<void>[] = []
  #pausing: Promise<void> | undefined
  #isEnding = false

  constructor(
    start: StartMessage,
    parts: ChildParts,
    begin: (beginning: ChildBeginning) => ChildWork<Start, Started>,
    send: ChildBeginning['send'],
  ) {
    this.#parts = parts
    const settings = carriedSettings(start.settings)
    const log = createLog({ level: settings.logLevel, format: settings.logFormat })
    parts.logProcess(log)
    const descriptors = new Descriptors({ log })
    const sockets = new ChildSockets({ send, descriptors })
    this.#beginning = { start, settings, log, descriptors, sockets, send }
    this.#missing = start.sockets.length
    this.#work = begin(this.#beginning)
    this.#loading = this.#load()
    // A failure is reported to those that await it.
    this.#loading.catch(() => {})
    if (!start.isWaiting) this.#may.resolve()
    if (this.#missing === 0) void this.#run()
  }

  receive(message: ToChild, handle: ServerHandle | undefined): void {
    const { sockets } = this.#beginning
    switch (message.type) {
      case 'socket':
        this.#taken.push(sockets.take(message, handle))
        if (--this.#missing === 0) void this.#run()
        return
      case 'port':
        sockets.answered(message, handle)
        return
      case 'lend':
        sockets.lend(message, handle)
        return
      case 'unlend':
        sockets.unlend(message)
        return
      case 'use':
        this.#use(message)
        return
      case 'go':
        this.#may.resolve()
        return
      case 'pause':
        this.#pausing = this.#pause()
        return
      case 'resume':
        sockets.renew()
        this.#pausing = undefined
        this.#taken = []
        this.#missing = message.sockets.length
        if (this.#missing === 0) void this.#run()
        return
      case 'drain':
      case 'stop':
        void this.#end(message.type)
        return
      case 'control':
      case 'workers':
      case 'figures':
      case 'stopping':
      case 'draining':
        this.#work.receive(message)
        return
      case 'start': // the first message, and only that
    }
  }

  async #load(): Promise<Start> {
    const { descriptors, send } = this.#beginning
    const [start] = await Promise.all([this.#work.load(), descriptors.start()])
    send({ type: 'loaded', version: this.#parts.version, supervision: SUPERVISION, answersUse: true })
    return start
  }

  #use({ settings: carried, round }: UseMessage): void {
    const { log, send } = this.#beginning
    const settings = carriedSettings(carried)
    log.level = settings.logLevel
    this.#newer = settings
    if (!this.#running) {
      // Confirmed once it runs.
      this.#round = round
      return
    }
    try {
      this.#running.use(settings)
      send({ type: 'using', round })
    } catch (err) {
      // Not thrown: all children would end at the same time, and with them all connections.
      log.error({ err }, 'cannot apply all reloaded settings')
      send({ type: 'using', round, fault: err instanceof Error ? err.message : String(err) })
    }
  }

  async #run(): Promise<void> {
    const { settings, sockets, send } = this.#beginning
    try {
      const [start] = await Promise.all([this.#loading, this.#may.promise, ...this.#taken])
      const running = await this.#work.run(start)
      this.#running = running
      if (this.#newer) running.use(this.#newer)
      sockets.letIn()
      send(this.#work.ready(running))
      if (this.#round !== undefined) send({ type: 'using', round: this.#round })
      this.#round = undefined
    } catch (error) {
      if (this.#isEnding) return
      const { parent, fault, exit } = this.#parts
      parent.send({ type: 'failed', reason: fault(error, settings) }, () => exit(1))
    }
  }

  async #pause(): Promise<void> {
    const { log, send } = this.#beginning
    const running = this.#running
    try {
      await (running?.pause ? running.pause() : Promise.reject(new Error('the process is not running yet')))
      this.#running = undefined
      if (!this.#isEnding) send({ type: 'paused' })
    } catch (err) {
      // If it is needed again, a replacement is started.
      log.error({ err }, 'cannot pause process; it ends instead')
      await flushLog(log, LAST_LINES_MS)
      this.#parts.exit(1)
    }
  }

  async #end(how: 'drain' | 'stop'): Promise<void> {
    if (this.#isEnding) return
    this.#isEnding = true
    const { log, sockets, descriptors } = this.#beginning
    sockets.endLoans()
    let code = 0
    try {
      await this.#pausing
      if (how === 'drain') await this.#running?.drain?.()
      await this.#running?.stop()
    } catch (err) {
      log.error({ err }, 'process did not shut down cleanly')
      code = 1
    }
    // This may still log how many connections it has closed.
    await descriptors.stop()
    await flushLog(log, LAST_LINES_MS)
    this.#parts.exit(code)
  }
}
