/**
 * The endpoints of agents that get certificates of their own: names directly below `--domain`, if no wildcard is possible.
 */
import { type ManagedName, nameStage } from '../store/certificate-reader.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Store } from '../store/store.ts'
import type { WantedName, WantedNames } from './wanted-names.ts'

export interface EndpointNamesOptions extends Pick<ControlTools, 'now' | 'log'> {
  readonly store: Pick<Store, 'read' | 'write'>
  readonly wanted: Pick<WantedNames, 'get' | 'issuedFor' | 'isUploaded' | 'issuedAlone'>
  readonly domain: string
  /** First certificates within a week, of all nodes together. */
  readonly perWeek: number
  /** Whether an agent has the name, here or at another node. */
  readonly isOnline: (name: string) => Promise<boolean>
  readonly onChange: () => void
}

const WEEK_MS = 7 * 86_400_000

/**
 * Agents choose names freely, and authorities limit certificates per week and domain: so the number of names is bounded. A
 * name counts only while an agent is online there; without one it is forgotten when its certificate would be renewed.
 */
export class EndpointNames {
  readonly #options: EndpointNamesOptions

  constructor(options: EndpointNamesOptions) {
    this.#options = options
  }

  /** An agent came online under a name. */
  async started(name: string): Promise<void> {
    const { store, wanted, onChange, log } = this.#options
    if (!this.#isBelow(name) || wanted.get(name) || wanted.isUploaded(name)) return
    if (wanted.issuedFor(name) === undefined && !this.#hasRoom()) {
      log.info(
        { name },
        'no certificate ordered for an endpoint: the limit of the week is reached (--acme-endpoints-per-week)',
      )
      return
    }
    // Agents come and go all day: nothing is written for a name that is already managed.
    if (await store.read(({ certificates }) => certificates.managedName(name))) return
    await store.write(({ certificates }) => certificates.manage([name]))
    onChange()
  }

  /** What is wanted for a name that is due; undefined if it is not the name of an online endpoint. */
  async get({ name, stage }: Pick<ManagedName, 'name' | 'stage'>): Promise<WantedName | undefined> {
    const { wanted, isOnline, perWeek } = this.#options
    if (!this.#isBelow(name) || wanted.isUploaded(name)) return undefined
    // Other names may have used up the bound; an order that was begun is finished anyway.
    const isCounted = stage === nameStage.ordering || wanted.issuedFor(name) !== undefined
    if (!isCounted && !this.#hasRoom()) return undefined
    if (!(await isOnline(name))) return undefined
    // Several nodes may see the same room: the database counts when an order begins.
    return { name, keyType: 'ecdsa', domainIds: [], ...(!isCounted && { perWeek }) }
  }

  #isBelow(name: string): boolean {
    return name.slice(name.indexOf('.') + 1) === this.#options.domain
  }

  /** As far as this node knows. */
  #hasRoom(): boolean {
    const { wanted, perWeek, now } = this.#options
    const since = now() - WEEK_MS
    return wanted.issuedAlone(since).filter((name) => this.#isBelow(name)).length < perWeek
  }
}
