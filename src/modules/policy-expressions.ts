/** The expressions of the policies of an edge that is compiled: parsed elsewhere beforehand, and here where nobody waits. */
import { type ParsedExpression, type PreparedExpression, parseHere, readPrepared } from '../policy/parsed.ts'
import { preparePolicies } from './policy/traffic.ts'

/** Parses expressions off the event loop. */
export type PrepareExpressions = (texts: readonly string[]) => Promise<readonly PreparedExpression[]>

export class PolicyExpressions {
  readonly #prepared = new Map<string, PreparedExpression>()

  /** Loads what policies need before anybody can connect: it takes a tenth of a second, and traffic would wait for it later. */
  static load(): void {
    preparePolicies()
  }

  /** Has those parsed that are not yet. */
  async prepare(texts: readonly string[], elsewhere: PrepareExpressions): Promise<void> {
    const unknown = texts.filter((text) => !this.#prepared.has(text))
    if (unknown.length === 0) return
    const prepared = await elsewhere(unknown)
    for (const [i, each] of prepared.entries()) this.#prepared.set(unknown[i] ?? '', each)
  }

  parse(text: string): ParsedExpression {
    const prepared = this.#prepared.get(text)
    return prepared ? readPrepared(prepared) : parseHere(text)
  }
}
