/** A cache of recently used logins, limited in bytes; the least recently used go first. */
import { Groups } from '../../lib/multi-map.ts'
import type { StoredLogin } from '../../link/planes/login-store.ts'
import type { Login } from '../../model/logins.ts'

export interface CachedLogin extends Pick<StoredLogin, 'id' | 'userId' | 'expiresAt'> {
  readonly browser: string
  readonly routeId: string
  login: Login
  /** When the store was last asked for it. */
  readAt: number
  /** The latest visit of the user that is stored, or about to be. */
  notedAt: number
}

interface Held {
  readonly cached: CachedLogin
  readonly bytes: number
  /** Whether the login was used since it was last considered for removal. */
  isUsed: boolean
}

/** Memory of a login besides what its module keeps, in bytes: an estimate for objects and keys. */
const LOGIN_BYTES = 1024

export class LoginCache {
  readonly #maxBytes: number
  /** By browser and route; a Map keeps its order, so the first entry is the next to be considered for removal. */
  readonly #held = new Map<string, Held>()
  readonly #keys = new Map<string, string>()
  readonly #browsers = new Groups<string>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#held.size
  }

  get(browser: string, routeId: string): CachedLogin | undefined {
    return this.at(keyOf(browser, routeId))
  }

  /** The key, for callers that ask often. */
  at(key: string): CachedLogin | undefined {
    const held = this.#held.get(key)
    if (held) held.isUsed = true
    return held?.cached
  }

  /** Stores a login, replacing the one before. */
  set(cached: CachedLogin): void {
    const key = keyOf(cached.browser, cached.routeId)
    this.#remove(key)
    let bytes = LOGIN_BYTES
    for (const [name, value] of Object.entries(cached.login.kept)) bytes += name.length + value.length
    this.#held.set(key, { cached, bytes, isUsed: false })
    this.#keys.set(cached.id, key)
    this.#browsers.add(cached.browser, key)
    this.#bytes += bytes
    this.#shrink()
  }

  drop(id: string): void {
    const key = this.#keys.get(id)
    if (key !== undefined) this.#remove(key)
  }

  dropBrowser(browser: string): void {
    for (const key of [...this.#browsers.get(browser)]) this.#remove(key)
  }

  dropUsers(ids: ReadonlySet<string>): void {
    for (const [key, { cached }] of this.#held) if (ids.has(cached.userId)) this.#remove(key)
  }

  clear(): void {
    this.#held.clear()
    this.#keys.clear()
    this.#browsers.clear()
    this.#bytes = 0
  }

  /** An entry that was used since goes to the end once more. */
  #shrink(): void {
    while (this.#bytes > this.#maxBytes) {
      const [first] = this.#held
      if (!first) return
      const [key, held] = first
      if (held.isUsed) {
        held.isUsed = false
        this.#held.delete(key)
        this.#held.set(key, held)
      } else {
        this.#remove(key)
      }
    }
  }

  #remove(key: string): void {
    const held = this.#held.get(key)
    if (!held) return
    const { cached, bytes } = held
    this.#held.delete(key)
    this.#keys.delete(cached.id)
    this.#bytes -= bytes
    this.#browsers.delete(cached.browser, key)
  }
}

export function keyOf(browser: string, routeId: string): string {
  return `${browser} ${routeId}`
}
