/** Sits between an edge and its modules in a dry run, and notes what each of them does. */
import type { ExplainedStep, StepPhase } from '../../model/explanation.ts'
import { callText, headerChanges, verdictText } from '../../model/explanation-words.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Phases, RequestVerdict, ResponseVerdict } from '../../modules/phases.ts'
import type { PolicyNotes } from '../../modules/policy/traffic.ts'

/** What a phase may return. */
type Verdict = RequestVerdict | ResponseVerdict | { readonly refuse: VisitorErrorCode }

interface StepNotesOptions {
  readonly policy: Pick<PolicyNotes, 'take' | 'takeMeter'>
  /** What modules wanted to fetch so far, each as part of a sentence. */
  readonly asked: readonly string[]
}

export class StepNotes {
  readonly steps: ExplainedStep[] = []
  /** A sentence that names the fetch on which the rest depends; undefined when there is none. */
  depends: string | undefined
  /** The module that answered or refused last. */
  decider: string | undefined
  readonly #options: StepNotesOptions

  constructor(options: StepNotesOptions) {
    this.#options = options
  }

  note(module: string, phase: StepPhase, outcome: string): void {
    const { policy } = this.#options
    this.steps.push({ module, phase, outcome, rules: policy.take(), meter: policy.takeMeter() })
  }

  /** The same phases, each of which is noted. */
  readonly watch = (module: string, phases: Phases): Phases => {
    const { accept, handshake, request, upstream, response } = phases
    return {
      ...phases,
      ...(accept && { accept: (peer, reached) => this.#at(module, 'accept', () => accept(peer, reached)) }),
      ...(handshake && {
        handshake: (tls, peer, reached) => this.#at(module, 'handshake', () => handshake(tls, peer, reached)),
      }),
      ...(request && { request: (ctx) => this.#stop(module, 'request', () => request(ctx)) }),
      ...(upstream && {
        upstream: (outgoing, ctx) => {
          const before = outgoing.headers.clone()
          this.#at(
            module,
            'upstream',
            () => {
              upstream(outgoing, ctx)
              return undefined
            },
            () => headerChanges(before, outgoing.headers),
          )
        },
      }),
      ...(response && {
        response: (incoming, ctx) => {
          const [headers, status] = [incoming.headers.clone(), incoming.status]
          return this.#stop(
            module,
            'response',
            () => response(incoming, ctx),
            () => [
              ...headerChanges(headers, incoming.headers),
              ...(incoming.status === status ? [] : [`changes the status to ${incoming.status}`]),
            ],
          )
        },
      }),
    }
  }

  /** Runs a phase that decides at once. */
  #at<V extends Verdict>(module: string, phase: StepPhase, run: () => V, changes: () => string[] = none): V {
    try {
      const verdict = run()
      this.#over(module, phase, verdict, changes)
      return verdict
    } catch (error) {
      this.note(module, phase, failure(error))
      throw error
    }
  }

  /** Runs a phase that may wait; a verdict that depends on another server ends the run. */
  #stop<V extends RequestVerdict | ResponseVerdict>(
    module: string,
    phase: StepPhase,
    run: () => V | Promise<V>,
    changes: () => string[] = none,
  ): RequestVerdict | Promise<RequestVerdict> {
    const before = this.#options.asked.length
    const over = (verdict: V): RequestVerdict => {
      const asked = this.#options.asked.slice(before)
      if (asked.length === 0) {
        this.#over(module, phase, verdict, changes)
        return verdict
      }
      const said = callText(module, asked)
      this.note(module, phase, said)
      this.depends = `${module} ${said}; all else depends on the answer.`
      return { close: true }
    }
    const failed = (error: unknown): never => {
      this.note(module, phase, failure(error))
      throw error
    }
    try {
      const verdict = run()
      return verdict instanceof Promise ? verdict.then(over, failed) : over(verdict)
    } catch (error) {
      return failed(error)
    }
  }

  #over(module: string, phase: StepPhase, verdict: Verdict, changes: () => string[]): void {
    if (verdict) this.decider = module
    const said = verdict ? [verdictText(verdict)] : changes()
    this.note(module, phase, said.length === 0 ? 'passes' : said.join(', '))
  }
}

const none = (): string[] => []

function failure(error: unknown): string {
  return `fails: ${error instanceof Error ? error.message : String(error)}`
}
