/** The listening sockets of all workers: who holds which, and what happens to those whose worker is gone. */
import type { AddressInfo } from 'node:net'
import type { ListenerName } from '../config/systemd-sockets.ts'

/** A listener, or the port of a TCP edge. */
export type SocketName = ListenerName | `tcp ${number}`

export function kindOf(name: SocketName): ListenerName | 'tcp' {
  return name.startsWith('tcp ') ? 'tcp' : (name as ListenerName) // all other names are those of listeners
}

interface HeldSocket {
  readonly address: AddressInfo
  close(): void
}

export interface SlotSocket {
  readonly host: string
  /** 0 lets the system choose; all slots get the port that it chose for the first. */
  readonly port: number
}

export interface HeldSocketsOptions<Socket> {
  /** Rejects with the error of the system. */
  readonly open: (socketAddress: SlotSocket, options: { readonly isSpread: boolean }) => Promise<Socket>
  /** Whether each slot has its own socket; otherwise all share one. */
  readonly isSpread: boolean
  /** Sockets that a service manager handed in. All slots share them, and they stay open until the end. */
  readonly handed?: ReadonlyMap<SocketName, Socket>
}

/** A socket that a worker begins or ceases to serve beside its own. */
export interface Loan<Socket> {
  readonly name: SocketName
  readonly slot: number
  readonly to: string
  readonly socket: Socket
}

interface Held<Socket> {
  readonly socket: Socket
  readonly holders: Set<string>
  borrower: string | undefined
}

interface Group<Socket> {
  readonly name: SocketName
  readonly isShared: boolean
  readonly isHanded: boolean
  /** By slot; a shared socket is in the first. */
  readonly slots: Map<number, Held<Socket>>
}

const SHARED_SLOT = 0

/** Holds a socket while its port is read; no child has this id. */
const NOBODY = ''

/** Errors of a system that cannot have two sockets at one address. */
const cannotSpread: ReadonlySet<unknown> = new Set(['ENOTSUP', 'ENOPROTOOPT'])

/**
 * Each slot has a socket of its own for every address, so that the system spreads connections evenly. When its worker dies,
 * a socket stays open here. Connections wait in its queue until another worker borrows the socket or the slot's next worker
 * serves it. A socket may have two holders while one worker takes over from another.
 */
export class HeldSockets<Socket extends HeldSocket> {
  readonly #options: HeldSocketsOptions<Socket>
  /** By name and place: after an upgrade with other settings one name may have two places for a while. */
  readonly #groups = new Map<string, Group<Socket>>()
  /** Sockets of one place are opened one after the other: the first decides the port. */
  readonly #turns = new Map<string, Promise<unknown>>()
  #isClosed = false

  constructor(options: HeldSocketsOptions<Socket>) {
    this.#options = options
    for (const [name, socket] of options.handed ?? []) {
      const slots = new Map([[SHARED_SLOT, { socket, holders: new Set<string>(), borrower: undefined }]])
      this.#groups.set(name, { name, isShared: true, isHanded: true, slots })
    }
  }

  /** Number of open sockets. */
  get size(): number {
    return [...this.#groups.values()].reduce((sum, { slots }) => sum + slots.size, 0)
  }

  /** The socket of this slot, opened if there is none; rejects with the system's error. */
  async take(name: SocketName, slot: number, holder: string, socketAddress: SlotSocket): Promise<Socket> {
    const key = this.#key(name, socketAddress)
    const before = this.#turns.get(key) ?? Promise.resolve()
    const taken = before.then(() => this.#take(name, slot, holder, socketAddress))
    const turn = taken.catch(() => {})
    this.#turns.set(key, turn)
    void turn.then(() => this.#turns.get(key) === turn && this.#turns.delete(key))
    return taken
  }

  /** The port of a name at this place, which is opened if need be; rejects with the system's error. */
  async portAt(name: SocketName, socketAddress: SlotSocket): Promise<number> {
    const { address } = await this.take(name, SHARED_SLOT, NOBODY, socketAddress)
    this.died(NOBODY)
    return address.port
  }

  /** Whether a process other than `holder` also serves its socket. */
  isServed(name: SocketName, slot: number, holder: string): boolean {
    for (const group of this.#groups.values()) {
      const held = group.slots.get(group.isShared ? SHARED_SLOT : slot)
      if (group.name === name && held?.holders.has(holder)) return held.holders.size > 1 || held.borrower !== undefined
    }
    return false
  }

  /** The holder no longer needs the socket. The last holder of a name closes all its sockets, waiting ones included. */
  giveUp(name: SocketName, holder: string): void {
    for (const [key, group] of this.#groups) {
      if (group.name !== name) continue
      const isIts = release(group, holder)
      // At another place, or after a retirement, sockets may wait for another process, which must not lose them.
      if (!isIts) continue
      const isOver = !isHeld(group)
      for (const [slot, { holders, borrower }] of group.slots) {
        if (isOver || (holders.size === 0 && borrower === undefined)) this.#close(key, slot)
      }
    }
  }

  /** The holder is gone. Its sockets wait for another worker, unless they have a second holder. */
  died(holder: string): void {
    for (const group of this.#groups.values()) release(group, holder)
  }

  /** Releases holders that are about to finish while others serve already, and closes sockets that these did not take. */
  retire(holders: readonly string[]): void {
    for (const holder of holders) this.died(holder)
    for (const [key, group] of this.#groups) {
      if (!isHeld(group)) for (const slot of group.slots.keys()) this.#close(key, slot)
    }
  }

  /** Lends waiting sockets to those of `living` that already serve the same name. */
  lend(living: readonly string[]): readonly Loan<Socket>[] {
    const loans: Loan<Socket>[] = []
    for (const { name, slots } of this.#groups.values()) {
      const able = living.filter((id) => [...slots.values()].some(({ holders }) => holders.has(id)))
      for (const [slot, held] of slots) {
        const to = able[slot % able.length]
        if (held.holders.size > 0 || held.borrower !== undefined || to === undefined) continue
        held.borrower = to
        loans.push({ name, slot, to, socket: held.socket })
      }
    }
    return loans
  }

  /** A worker serves this slot now: returns the loans that end, and closes sockets of the slot that it did not take. */
  settle(slot: number): readonly Loan<Socket>[] {
    const ended: Loan<Socket>[] = []
    for (const [key, { name, slots }] of this.#groups) {
      const held = slots.get(slot)
      if (!held) continue
      if (held.borrower !== undefined) ended.push({ name, slot, to: held.borrower, socket: held.socket })
      held.borrower = undefined
      if (held.holders.size === 0) this.#close(key, slot)
    }
    return ended
  }

  /** Closes all sockets here; workers go on with theirs. */
  close(): void {
    this.#isClosed = true
    for (const { slots } of this.#groups.values()) for (const { socket } of slots.values()) socket.close()
    this.#groups.clear()
  }

  async #take(name: SocketName, slot: number, holder: string, socketAddress: SlotSocket): Promise<Socket> {
    const key = this.#key(name, socketAddress)
    const found = this.#groups.get(key)
    const at = found?.isShared ? SHARED_SLOT : slot
    const held = found?.slots.get(at)
    if (held) {
      held.holders.add(holder)
      return held.socket
    }
    const opened = await this.#open(socketAddress, found)
    if (this.#isClosed) {
      opened.socket.close()
      throw Object.assign(new Error('the server is stopping'), { code: 'ECANCELED' })
    }
    // Looked up again: the group may have been closed meanwhile.
    const group = this.#groups.get(key) ?? { name, isShared: opened.isShared, isHanded: false, slots: new Map() }
    group.slots.set(group.isShared ? SHARED_SLOT : slot, {
      socket: opened.socket,
      holders: new Set([holder]),
      borrower: undefined,
    })
    this.#groups.set(key, group)
    return opened.socket
  }

  async #open(
    { host, port: wanted }: SlotSocket,
    group: Group<Socket> | undefined,
  ): Promise<{ socket: Socket; isShared: boolean }> {
    const { open, isSpread } = this.#options
    const [first] = group?.slots.values() ?? []
    const port = first?.socket.address.port ?? wanted
    if (!isSpread) return { socket: await open({ host, port }, { isSpread: false }), isShared: true }
    // Tried alone first: another program of this user with `SO_REUSEPORT`, such as another Postern, would share the port.
    if (!first && port !== 0 && !this.#hasPort(port)) (await open({ host, port }, { isSpread: false })).close()
    try {
      return { socket: await open({ host, port }, { isSpread: true }), isShared: false }
    } catch (error) {
      if (first || !(error instanceof Error && 'code' in error && cannotSpread.has(error.code))) throw error
      return { socket: await open({ host, port }, { isSpread: false }), isShared: true }
    }
  }

  /** The key of a group; a handed-in socket is found by name, wherever it listens. */
  #key(name: SocketName, { host, port }: SlotSocket): string {
    return this.#groups.get(name)?.isHanded ? name : `${name} at ${host} ${port}`
  }

  /** Whether we already have this port, on another address. */
  #hasPort(port: number): boolean {
    return [...this.#groups.values()].some(({ slots }) =>
      [...slots.values()].some(({ socket }) => socket.address.port === port),
    )
  }

  #close(key: string, slot: number): void {
    const group = this.#groups.get(key)
    const held = group?.slots.get(slot)
    if (!group || !held || group.isHanded) return
    held.socket.close()
    group.slots.delete(slot)
    if (group.slots.size === 0) this.#groups.delete(key)
  }
}

/** Releases a holder's sockets of a group; returns whether it had any. */
function release({ slots }: Group<unknown>, holder: string): boolean {
  let had = false
  for (const held of slots.values()) {
    if (held.holders.delete(holder)) had = true
    if (held.borrower !== holder) continue
    held.borrower = undefined
    had = true
  }
  return had
}

function isHeld({ slots }: Group<unknown>): boolean {
  return [...slots.values()].some(({ holders }) => holders.size > 0)
}
