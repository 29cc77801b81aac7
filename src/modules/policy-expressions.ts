/** The expressions of an edge's policies: parsed on another thread beforehand, or here on demand. */
import { type ParsedExpression, type PreparedExpression, parseHere, readPrepared } from './policy/engine/parsed.ts'

/** Parses expressions off the event loop. */
export type PrepareExpressions = (texts: readonly string[]) => Promise<readonly PreparedExpression[]>

export class PolicyExpressions {
  readonly #prepared = new Map<string, PreparedExpression>()

  /** Has `elsewhere` parse the expressions that are not parsed yet. */
  async prepare(texts: readonly string[], prepareThere: PrepareExpressions): Promise<void> {
    const unknown = texts.filter((text) => !this.#prepared.has(text))
    if (unknown.length === 0) return
    const prepared = await prepareThere(unknown)
    for (const [i, each] of prepared.entries()) this.#prepared.set(unknown[i] ?? '', each)
  }

  parse(text: string): ParsedExpression {
    const prepared = this.#prepared.get(text)
    return prepared ? readPrepared(prepared) : parseHere(text)
  }
}
