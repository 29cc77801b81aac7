/** The listening sockets that a child gets from its supervisor. */
import type { AddressInfo } from 'node:net'
import type { Descriptors } from '../../lib/files/descriptors.ts'
import { EarlyListener, type ServerHandle } from '../../lib/net/early-listener.ts'
import type { ListenOn } from '../../lib/net/listen-on.ts'
import { earlyOptions, openEarly } from '../config/listeners.ts'
import type { ListenerName } from '../config/systemd-sockets.ts'
import { kindOf, type SocketName } from './held-sockets.ts'
import type { FromChild, LendMessage, PortMessage, SocketMessage } from './process-messages.ts'
import { postponeListening } from './socket-handle.ts'
import type { ChildBeginning } from './supervised.ts'

/** The ports of TCP edges and endpoints, as a worker gets them. */
export interface WorkerPorts {
  /** Resolves with what to listen on, or with the system's error, such as `EADDRINUSE`; then there is nothing to close. */
  open(port: number): Promise<EarlyListener | NodeJS.ErrnoException>
  /** Call this when nothing listens on the port any more. */
  close(port: number): void
}

/** The socket for a port. */
interface Answer {
  readonly handle: ServerHandle
  readonly address: AddressInfo | undefined
  readonly isEarly: boolean
}

export class ChildSockets implements WorkerPorts {
  readonly #send: (message: FromChild) => void
  readonly #descriptors: Descriptors
  readonly #listeners = new Map<SocketName, EarlyListener>()
  readonly #asked = new Map<number, (answer: Answer | NodeJS.ErrnoException) => void>()
  /** Functions that end each loan. */
  readonly #loans = new Map<string, Promise<() => void>>()
  /** Functions that begin to listen at sockets that others still serve; undefined once this process is ready. */
  #postponed: (() => void)[] | undefined = []
  #lastRequest = 0

  constructor({ send, descriptors }: Pick<ChildBeginning, 'send' | 'descriptors'>) {
    this.#send = send
    this.#descriptors = descriptors
  }

  /** Begins to listen if nobody else serves the socket. When it is missing, its user opens it later and reports the error. */
  async take({ name, address, isEarly }: SocketMessage, handle: ServerHandle | undefined): Promise<void> {
    if (!handle) return
    const kind = kindOf(name)
    const listener = isEarly
      ? await openEarly(kind, { handle }, this.#descriptors).catch(() => undefined)
      : this.#later(kind, handle, address)
    if (listener) this.#listeners.set(name, listener)
  }

  /** Begins to listen everywhere, since this process is ready. Throws the system's error. */
  letIn(): void {
    const postponed = this.#postponed ?? []
    this.#postponed = undefined
    for (const listen of postponed) listen()
  }

  /** Prepares for another start in the same process: former sockets are closed, and new ones follow. */
  renew(): void {
    this.#postponed = []
    this.#listeners.clear()
  }

  /** What to listen on under this name: the socket that came, or else the place itself. */
  listener(name: ListenerName, socketAddress: ListenOn): ListenOn {
    return this.#listeners.get(name) ?? socketAddress
  }

  async open(port: number): Promise<EarlyListener | NodeJS.ErrnoException> {
    const request = ++this.#lastRequest
    const answered = new Promise<Answer | NodeJS.ErrnoException>((resolve) => this.#asked.set(request, resolve))
    this.#send({ type: 'openPort', request, port })
    const answer = await answered
    if (answer instanceof Error) return answer
    const { handle, address, isEarly } = answer
    try {
      const listener =
        isEarly || !address || !this.#postponed
          ? await openEarly('tcp', { handle }, this.#descriptors)
          : this.#later('tcp', handle, address)
      this.#listeners.set(`tcp ${port}`, listener)
      return listener
    } catch (error) {
      this.close(port)
      return error as NodeJS.ErrnoException // of the system: nothing else rejects
    }
  }

  close(port: number): void {
    const name: SocketName = `tcp ${port}`
    this.#listeners.get(name)?.endOthers()
    this.#listeners.delete(name)
    this.#send({ type: 'closePort', port })
  }

  answered({ request, error, address, isEarly = true }: PortMessage, handle: ServerHandle | undefined): void {
    const answer = this.#asked.get(request)
    this.#asked.delete(request)
    if (error) answer?.(Object.assign(new Error(error.message), { code: error.code, syscall: 'listen' }))
    else if (handle) answer?.({ handle, address, isEarly })
    // The handle is missing because this process has run out of descriptors.
    else answer?.(Object.assign(new Error('listen EMFILE'), { code: 'EMFILE', syscall: 'listen' }))
  }

  /** Also serves the socket of another worker. */
  lend({ name, slot }: LendMessage, handle: ServerHandle | undefined): void {
    const listener = this.#listeners.get(name)
    // Connections then wait for its own worker.
    if (!listener || !handle) return
    this.#loans.set(
      `${slot} ${name}`,
      listener.alsoAt(handle).catch(() => () => {}),
    )
  }

  unlend({ name, slot }: { readonly name: SocketName; readonly slot: number }): void {
    const loan = this.#loans.get(`${slot} ${name}`)
    this.#loans.delete(`${slot} ${name}`)
    void loan?.then((end) => end())
  }

  /** Stops serving sockets of other workers, since this process is about to end. */
  endLoans(): void {
    for (const loan of this.#loans.values()) void loan.then((end) => end())
    this.#loans.clear()
  }

  /** A listener that begins only when this process is ready; others serve the socket until then. */
  #later(kind: ListenerName | 'tcp', handle: ServerHandle, address: AddressInfo): EarlyListener {
    this.#postponed?.push(postponeListening(handle))
    return EarlyListener.later(handle, address, earlyOptions(kind, this.#descriptors))
  }
}
