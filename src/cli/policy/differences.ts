/** Where an explanation differs from what a case expects. */
import type { Explanation, ShownHeaders } from '../../model/explanation.ts'
import type { ExpectedOutcome } from './cases.ts'

export interface Difference {
  readonly field: string
  readonly expected: unknown
  readonly actual: unknown
}

/** Empty when everything expected is so; fields that a case does not name are not compared. */
export function differencesOf(expected: ExpectedOutcome, explanation: Explanation): Difference[] {
  const { outcome } = explanation
  const found: Difference[] = []
  const compare = (field: string, wanted: unknown, actual: unknown): void => {
    if (wanted !== undefined && !isSame(wanted, actual)) found.push({ field, expected: wanted, actual })
  }
  compare('verdict', expected.verdict, outcome.verdict)
  compare('status_code', expected.status_code, outcome.status_code)
  compare('error_code', expected.error_code, outcome.error_code)
  compareHeaders('headers', expected.headers, outcome.headers)
  compare('body', expected.body, outcome.body ?? '')
  compare('matched', expected.matched, matchedRules(explanation))
  const { upstream } = expected
  if (upstream) {
    if (!outcome.upstream) found.push({ field: 'upstream', expected: upstream, actual: null })
    else {
      compare('upstream.method', upstream.method, outcome.upstream.method)
      compare('upstream.url', upstream.url, outcome.upstream.url)
      compareHeaders('upstream.headers', upstream.headers, outcome.upstream.headers)
    }
  }
  return found

  function compareHeaders(at: string, wanted: ExpectedOutcome['headers'], actual: ShownHeaders): void {
    for (const [name, value] of Object.entries(wanted ?? {})) {
      const key = name.toLowerCase()
      const values = Object.hasOwn(actual, key) ? (actual[key] ?? []) : []
      compare(`${at}.${name}`, value === null ? [] : [value].flat().map(String), values)
    }
  }
}

/** The names of the rules that matched, in the order in which they ran. */
function matchedRules({ steps }: Explanation): string[] {
  return steps.flatMap(({ rules }) => rules.filter(({ matched }) => matched).map(({ name }) => name))
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
