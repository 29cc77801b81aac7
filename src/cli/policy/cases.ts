/** A file of test cases: described traffic, what it passes through, and the expected outcome. */
import type { Static } from 'typebox'
import { check } from '../../lib/shape/check.ts'
import { closedObject } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { describedFields } from '../../model/described.ts'
import { verdicts } from '../../model/explanation.ts'

const MAX_CASES = 10_000

const text = (description: string) => Type.Optional(Type.String({ maxBytes: 65_536, description }))

/** Null or an empty list means that the header must be absent. */
const headers = Type.Optional(
  Type.Record(Type.String(), Type.Unknown(), { description: 'Headers by name: a value, a list, or null for none.' }),
)

const expected = closedObject({
  verdict: Type.Optional(Type.Enum([...verdicts], { description: 'What happens to the traffic.' })),
  status_code: Type.Optional(Type.Integer({ description: 'Status that the visitor sees.' })),
  error_code: text('Error that the visitor gets, such as `ERR_IP_REFUSED`.'),
  headers,
  body: text('Body that the visitor sees.'),
  matched: Type.Optional(
    Type.Array(Type.String(), { description: 'Names of the rules that apply, in the order in which they run.' }),
  ),
  upstream: Type.Optional(closedObject({ method: text('Method.'), url: text('Path and query.'), headers })),
})

/** What the traffic passes through: exactly one of these, in a case or for the whole file. */
const subject = {
  edge_id: text('Id of an edge of a server.'),
  route_id: text('Id of a route of a server.'),
  policy: Type.Optional(Type.Unknown({ description: 'The rules themselves, or their text.' })),
  policy_file: text('File of the rules, from the folder of this file.'),
}

const oneCase = closedObject({
  name: Type.String({ default: '', maxBytes: 255, description: 'What is tested.' }),
  ...subject,
  ...describedFields,
  expect: expected,
})

const form = closedObject({
  ...subject,
  cases: Type.Array(oneCase, { minItems: 1, maxItems: MAX_CASES, description: 'The cases.' }),
})

export type CaseFile = Static<typeof form>
export type Case = CaseFile['cases'][number]
export type ExpectedOutcome = Static<typeof expected>
export type Subject = Pick<Case, 'edge_id' | 'route_id' | 'policy' | 'policy_file'>

/** Throws `BadValue`. */
export function readCases(value: unknown): CaseFile {
  return check(form, value)
}

/** What a case passes through; undefined when neither it nor the file names exactly one thing. */
export function subjectOf(file: CaseFile, one: Case): Subject | undefined {
  for (const each of [one, file]) {
    const named = subjectNames.filter((name) => each[name] !== undefined)
    const [only, another] = named
    if (another !== undefined) return undefined
    if (only !== undefined) return { [only]: each[only] }
  }
  return undefined
}

const subjectNames = ['edge_id', 'route_id', 'policy', 'policy_file'] as const
