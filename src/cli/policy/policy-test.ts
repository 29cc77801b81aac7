/** `postern policy test`: runs a file of test cases and prints where the outcome differs from the expected one. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Command } from 'commander'
import { BadValue } from '../../lib/shape/check.ts'
import { countOf } from '../../lib/text/plural.ts'
import { printable } from '../../lib/text/printable.ts'
import type { Described } from '../../model/described.ts'
import { Refusal } from '../../model/errors.ts'
import type { Explanation } from '../../model/explanation.ts'
import { type Access, apiCaller, type Call, DEFAULT_API_URL } from '../api/api-client.ts'
import { Failure, misuse } from '../command-failure.ts'
import type { Terminal } from '../terminal.ts'
import { printJson } from '../text-table.ts'
import { type Case, type CaseFile, readCases, type Subject, subjectOf } from './cases.ts'
import { type Difference, differencesOf } from './differences.ts'

const help = `
The file is YAML or JSON. It has a list \`cases\`, each with \`request\` or \`connection\`, and \`expect\`. Each case, or the whole
file, names one of \`policy\`, \`policy_file\`, \`edge_id\` and \`route_id\`. A policy is tested here, an edge or a route on its
server. Nothing is sent to any service, and nothing is counted.

Example:
  policy:
    on_http_request:
      - name: read only
        expressions: ["req.method != 'GET'"]
        actions: [{ type: deny, config: { status_code: 405 } }]
  cases:
    - name: nobody writes
      request: { method: POST, url: /orders }
      expect: { status_code: 405, matched: [read only] }

Exit code: 0 if every outcome is as expected, 1 if one differs, 2 if the file or the command is wrong.`

interface TestOptions extends Access {
  readonly json?: true
}

interface Ran {
  readonly name: string
  readonly differences: readonly Difference[]
  readonly explanation: Explanation
}

export function policyTestCommand(terminal: Terminal): Command {
  return new Command('test')
    .description('run a file of test cases, and print where the outcome differs from the expected one')
    .argument('<file>', 'file of cases, or - for standard input')
    .option('--json', 'print the outcomes as JSON, with the explanation of each case')
    .option('--api-url <url>', `address of the API, for edges and routes (default: ${DEFAULT_API_URL})`)
    .option('--api-key <key>', 'API key; set POSTERN_API_KEY instead to keep it out of process lists')
    .option('--ca <file>', "CA of the API's certificate (default: the CAs of this machine)")
    .addHelpText('after', help)
    .action(async (file: string, options: TestOptions) => {
      const ran = await run(file, options, terminal)
      const failed = ran.filter(({ differences }) => differences.length > 0).length
      if (options.json) printJson(terminal, { cases: ran.map(showRun), failed })
      else print(terminal, ran, failed)
      if (failed > 0)
        throw new Failure(
          `${failed} of ${countOf(ran.length, 'case')} ${failed === 1 ? 'differs' : 'differ'} from what is expected`,
        )
    })
}

async function run(file: string, options: TestOptions, terminal: Terminal): Promise<Ran[]> {
  const { readDocument, explainPolicy, BadYaml } = await import('../../server/compose/explain-policy.ts')
  const label = file === '-' ? 'standard input' : file
  const folder = file === '-' ? terminal.cwd : dirname(resolve(terminal.cwd, file))
  const document = (path: string, text: string): unknown => {
    try {
      return readDocument(text)
    } catch (error) {
      if (error instanceof BadYaml) throw misuse(`${printable(path)} ${error.message}`)
      throw error
    }
  }
  const text = file === '-' ? await terminal.readInput() : fileText(terminal.cwd, file)
  const cases = checkCases(label, document(label, text))
  const policies = new Map<string, unknown>()
  const policyIn = (path: string): unknown => {
    if (!policies.has(path)) policies.set(path, document(path, fileText(folder, path)))
    return policies.get(path)
  }
  let call: Call | undefined
  const ran: Ran[] = []
  for (const [i, one] of cases.cases.entries()) {
    const name = one.name || `cases[${i}]`
    const subject = subjectOf(cases, one)
    if (!subject)
      throw misuse(`${printable(name)}: give one of \`policy\`, \`policy_file\`, \`edge_id\` and \`route_id\``)
    const asked = describedIn(one)
    const { edge_id, route_id, policy, policy_file } = subject
    let explanation: Explanation
    if (edge_id !== undefined || route_id !== undefined) {
      call ??= apiCaller(options, terminal)
      explanation = await onServer(call, subject, asked)
    } else {
      const written = policy_file === undefined ? policy : policyIn(policy_file)
      explanation = await explainPolicy(written, asked).catch((error: unknown) => {
        if (error instanceof BadValue || error instanceof Refusal)
          throw misuse(`${printable(name)}: ${printable(error.message)}`)
        throw error
      })
    }
    ran.push({ name, differences: differencesOf(one.expect, explanation), explanation })
  }
  return ran
}

async function onServer(call: Call, subject: Subject, asked: Described): Promise<Explanation> {
  const answer = await call('POST', '/policy/explain', { ...subject, ...asked })
  return answer as unknown as Explanation // the answer of that route
}

function checkCases(file: string, value: unknown): CaseFile {
  try {
    return readCases(value)
  } catch (error) {
    if (error instanceof BadValue)
      throw misuse(`${printable(file)}: ${printable(error.message.replace(/^the body/, 'it'))}`)
    throw error
  }
}

function describedIn({ request, connection, response, login, fetches }: Case): Described {
  return {
    fetches,
    ...(request && { request }),
    ...(connection && { connection }),
    ...(response && { response }),
    ...(login && { login }),
  }
}

function fileText(folder: string, path: string): string {
  try {
    return readFileSync(resolve(folder, path), 'utf8')
  } catch (cause) {
    throw misuse(`cannot read ${printable(path)}: ${(cause as NodeJS.ErrnoException).code ?? 'unreadable'}`)
  }
}

function showRun({ name, differences, explanation }: Ran) {
  return { name, passed: differences.length === 0, differences, explanation }
}

function print(terminal: Terminal, ran: readonly Ran[], failed: number): void {
  for (const { name, differences, explanation } of ran) {
    const line = (text: string): void => terminal.out(`${printable(text)}\n`)
    line(`${differences.length === 0 ? 'ok  ' : 'FAIL'}  ${name}`)
    if (differences.length === 0) continue
    for (const { field, expected, actual } of differences) {
      line(`      ${field}: expected ${value(expected)}, got ${value(actual)}`)
    }
    line(`      ${explanation.outcome.text}`)
    for (const each of explanationLines(explanation)) line(`        ${each}`)
  }
  terminal.out(`${countOf(ran.length, 'case')}, ${failed} failed\n`)
}

/** What each module and rule did, to explain a difference. */
function explanationLines({ steps }: Explanation): string[] {
  return steps.flatMap(({ module, phase, outcome, rules }) => [
    `${module} ${phase}: ${outcome}`,
    ...rules.flatMap(({ name, matched, expressions, actions }, i) => [
      `  rule ${name === '' ? i + 1 : JSON.stringify(name)} ${matchedText[String(matched)]}`,
      ...expressions.flatMap(({ text, value: whole, error, parts }) => [
        `    ${text}: ${error === null ? value(whole) : `fails, ${error}`}`,
        ...parts.map((part) => `      ${part.text}: ${value(part.value)}`),
      ]),
      ...actions.filter((each) => each.outcome !== null).map(({ type, outcome: did }) => `    ${type} ${did}`),
    ]),
  ])
}

const matchedText: Readonly<Record<string, string>> = {
  true: 'applies',
  false: 'does not apply',
  null: 'is not reached',
}

function value(given: unknown): string {
  if (given === null || given === undefined || (Array.isArray(given) && given.length === 0)) return 'nothing'
  return JSON.stringify(Array.isArray(given) && given.length === 1 ? given[0] : given)
}
