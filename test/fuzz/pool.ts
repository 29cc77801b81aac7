/** The ids that calls have created so far, which fill the placeholders of later calls. */
import type { Json } from '../support/api-client.ts'
import { PLACEHOLDER } from './values.ts'

interface Made {
  readonly id: string
  /** The edge of a route. */
  readonly parent: string | undefined
}

export class Pool {
  readonly #made = new Map<string, Made[]>()

  add({ id, edge_id: parent }: Json): void {
    const prefix = prefixOf(String(id))
    const all = this.#made.get(prefix) ?? []
    this.#made.set(prefix, all)
    all.push({ id, parent })
  }

  remove(id: string): void {
    const prefix = prefixOf(id)
    const rest = (this.#made.get(prefix) ?? []).filter((made) => made.id !== id)
    this.#made.set(prefix, rest)
  }

  /** Replaces the placeholders in `text` by ids; by an unknown id of the right form when there is none of its kind. */
  fill(text: string): string {
    return text.replace(PLACEHOLDER, (_, prefix, n) => this.#pick(prefix, n)?.id ?? `${prefix}${'0'.repeat(27)}`)
  }

  /** Does the same for a path, and makes the edge before a route the one that the route belongs to. */
  fillPath(path: string): string {
    const pair = /@id\(edghts_,\d+\)(\/routes\/@id\((edghtsrt_),(\d+)\))/.exec(path)
    const [whole, tail, prefix = '', n = ''] = pair ?? []
    const parent = this.#pick(prefix, n)?.parent
    return this.fill(whole !== undefined && parent !== undefined ? path.replace(whole, `${parent}${tail}`) : path)
  }

  #pick(prefix: string, n: string): Made | undefined {
    const all = this.#made.get(prefix) ?? []
    return all[Number(n) % all.length]
  }
}

function prefixOf(id: string): string {
  return id.slice(0, id.lastIndexOf('_') + 1)
}
