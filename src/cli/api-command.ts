/** `postern api <resource> <verb>`: every operation of the management API, generated from the registries. */
import { Command, InvalidArgumentError, Option } from 'commander'
import { resources } from '../control-plane/resources/index.ts'
import type { Resource } from '../control-plane/resources/resource.ts'
import { Type } from '../lib/shape/type.ts'
import { nearest } from '../lib/text/nearest.ts'
import {
  type ApiAnswer,
  apiCaller,
  apiFollower,
  type Call,
  type CallMethod,
  DEFAULT_API_URL,
  type Follow,
} from './api/api-client.ts'
import { pathParameters, resourceAliases, resourceName, withDashes } from './api/command-names.ts'
import { bodyOf, type FieldFlag, fieldFlags, readData } from './api/flags.ts'
import { columnsOf, headingOf, listAll, queryOf, rowOf } from './api/list.ts'
import { printStream } from './api/stream.ts'
import { misuse } from './command-failure.ts'
import { group } from './group.ts'
import type { Terminal } from './terminal.ts'
import { printFields, printJson, printTable } from './text-table.ts'

/** What one command does; its options have been parsed and its ids checked. */
interface Job {
  readonly call: Call
  readonly follow: Follow
  readonly options: Readonly<Record<string, unknown>>
  /** The path of the resource, with its parameters filled in. */
  readonly path: string
  readonly args: readonly string[]
}

const examples = `
Examples:
  postern api api-keys list
  postern api api-keys create --description "key of the build server"
  postern api tcp-edges create --hostports localhost:20000 --data '{"backend":{"backend_id":"bkdtg_…"}}'
  postern api tcp-edges set-module edgtcp_… ip_restriction --data @restriction.json
  postern api tunnel-sessions stop ts_…

The key comes from POSTERN_API_KEY or --api-key, the address from POSTERN_API_URL or --api-url, and the CA of a server with
--api-tls from POSTERN_API_CA or --ca.`

export function apiCommand(terminal: Terminal): Command {
  const api = new Command('api')
  api.usage('<resource> <verb> [id] [options]').addHelpText('after', examples)
  group(api, () => printTable(terminal, ['resource', 'verbs', 'about'], resources.map(summary)))
  const taken = new Set(resources.map(resourceName))
  for (const resource of resources) {
    const aliases = resourceAliases(resource).filter((alias) => !taken.has(alias))
    for (const alias of aliases) taken.add(alias)
    api.addCommand(resourceCommand(terminal, resource).aliases(aliases))
  }
  return api
}

function summary(resource: Resource): Record<string, unknown> {
  const { verbs, commands, actions = [], about } = resource
  const all = [...verbs, ...commands, ...actions.map(({ name }) => name)]
  return { resource: resourceName(resource), verbs: all.join(' '), about }
}

function resourceCommand(terminal: Terminal, resource: Resource): Command {
  const name = resourceName(resource)
  const command = new Command(name).description(resource.about).usage('<verb> [id] [options]')
  group(command)
  const add = (verb: string, about: string, run: (job: Job) => Promise<void>) => {
    const leaf = new Command(verb).description(about)
    for (const parameter of pathParameters(resource.path)) {
      leaf.requiredOption(
        `--${withDashes(parameter)} <id>`,
        `the ${withDashes(parameter).replace('-id', '')} it belongs to`,
      )
    }
    leaf.option('--json', 'print the response as JSON')
    leaf.option('--api-url <url>', `address of the API (default: ${DEFAULT_API_URL})`)
    leaf.option('--api-key <key>', 'API key; set POSTERN_API_KEY instead to keep it out of process lists')
    leaf.option('--ca <file>', "CA of the API's certificate (default: the CAs of this machine)")
    leaf.addHelpText('after', () => `\nExample:\n  postern api ${name} ${verb} ${example(leaf)}`.trimEnd())
    leaf.action(async () => {
      const options = leaf.opts<Record<string, unknown>>()
      const access = { apiUrl: text(options.apiUrl), apiKey: text(options.apiKey), ca: text(options.ca) }
      const [call, follow] = [apiCaller(access, terminal), apiFollower(access, terminal)]
      await run({ call, follow, options, path: pathOf(resource.path, options), args: leaf.args })
    })
    command.addCommand(leaf)
    return leaf
  }
  addVerbs(terminal, resource, add)
  addRouteVerbs(terminal, resource, add)
  addStreamVerbs(terminal, resource, add)
  const { noun, commands, actions = [], clears } = resource
  const addSilent = (verb: string, about: string, method: CallMethod, at: string) => {
    add(verb, about, async ({ call, path, args: [id] }) => {
      await call(method, `${path}/${checkedId(id)}/${at}`, method === 'POST' ? {} : undefined)
    }).argument('<id>', `id of the ${noun}`)
  }
  for (const command of commands) addSilent(command, `tell the agent of the ${noun} to ${command}`, 'POST', command)
  for (const { name, about } of actions) addSilent(name, lowerFirst(about), 'POST', name)
  for (const { name } of clears)
    addSilent(`clear-${withDashes(name)}`, `clear the ${name} of one ${noun}`, 'DELETE', name)
  const names = resource.modules.flatMap(({ name, spellings = [] }) => [
    name,
    ...spellings.map((spelling) => spelling.name),
  ])
  if (names.length > 0) addModuleVerbs(terminal, resource, names, add)
  return command
}

type Add = (verb: string, about: string, run: (job: Job) => Promise<void>) => Command

function addVerbs(
  terminal: Terminal,
  { noun, verbs, listKey, create, update, view, columns, path, filters = {} }: Resource,
  add: Add,
): void {
  const idArgument = ['<id>', `id of the ${noun}`] as const
  const show = (answer: ApiAnswer | null, { options }: Job) => printAnswer(terminal, answer, options.json === true)
  if (verbs.includes('list') && listKey !== null) {
    const filterFlags = fieldFlags(Type.Object(filters))
    const leaf = add('list', `list every ${noun}`, async ({ call, options, path }) => {
      const limit = typeof options.limit === 'number' ? options.limit : undefined
      const items = await listAll(call, { path, listKey, limit, filters: filterFlags, options })
      if (options.json) {
        printJson(terminal, items)
        return
      }
      const shown = columnsOf(view, columns)
      printTable(
        terminal,
        shown.map(headingOf),
        items.map((item) => rowOf(item, shown)),
      )
    }).addOption(new Option('--limit <number>', 'show at most this many (default: all)').argParser(atLeastOne))
    for (const { option } of filterFlags) leaf.addOption(option)
  }
  if (verbs.includes('get')) {
    add('get', `show one ${noun}`, async (job) => {
      show(await job.call('GET', `${job.path}/${checkedId(job.args[0])}`), job)
    }).argument(...idArgument)
  }
  if (verbs.includes('create')) {
    const flags = fieldFlags(create, pathParameters(path))
    const leaf = add('create', `create a new ${noun}`, async (job) => {
      show(await job.call('POST', job.path, await bodyOf(flags, job.options, terminal)), job)
    })
    addBodyFlags(leaf, flags)
  }
  if (verbs.includes('update')) {
    const flags = fieldFlags(update, pathParameters(path))
    const leaf = add('update', `change fields of one ${noun}`, async (job) => {
      const body = await bodyOf(flags, job.options, terminal)
      show(await job.call('PATCH', `${job.path}/${checkedId(job.args[0])}`, body), job)
    })
    addBodyFlags(leaf.argument(...idArgument), flags)
  }
  if (verbs.includes('delete')) {
    add('delete', `delete one ${noun}`, async ({ call, path, args: [id] }) => {
      await call('DELETE', `${path}/${checkedId(id)}`)
      if (terminal.isTTY) terminal.out(`deleted ${id}\n`)
    }).argument(...idArgument)
  }
}

/** The verbs of routes that the resource brings itself. */
function addRouteVerbs(terminal: Terminal, { noun, routes = [] }: Resource, add: Add): void {
  for (const { at, method, body, verb, events } of routes) {
    if (!verb || events !== undefined) continue
    const { about, prints } = verb
    const flags = body ? fieldFlags(body) : []
    const leaf = add(lastWord(at), about, async ({ call, options, path, args: [id] }) => {
      const sent = body && (await bodyOf(flags, options, terminal))
      const answer = await call(method, `${path}${at.replace('{id}', () => checkedId(id))}`, sent)
      if (typeof prints !== 'object' || options.json) printAnswer(terminal, answer, Boolean(options.json ?? prints))
      else terminal.out(`${String(answer?.[prints.field])}\n`)
    })
    if (at.includes('{id}')) leaf.argument('<id>', `id of the ${noun}`)
    if (body) addBodyFlags(leaf, flags)
  }
}

function addStreamVerbs(terminal: Terminal, { kind, noun, view, columns, routes = [] }: Resource, add: Add): void {
  for (const { at, filters = {}, verb, events } of routes) {
    if (!verb || events === undefined) continue
    const flags = fieldFlags(Type.Object(filters))
    const leaf = add(lastWord(at), verb.about, async ({ follow, path, options }) => {
      const stream = follow(`${path}${at}${queryOf(flags, options)}`)
      const shown = columnsOf(view, columns)
      await printStream(terminal, stream, { kind, noun, ...(options.json !== true && { shown }) })
    })
    for (const { option } of flags) leaf.addOption(option)
  }
}

function addModuleVerbs(terminal: Terminal, { noun }: Resource, modules: readonly string[], add: Add): void {
  const verbs: readonly [verb: string, method: CallMethod, about: string][] = [
    ['set-module', 'PUT', 'replace one module'],
    ['get-module', 'GET', 'show one module'],
    ['delete-module', 'DELETE', 'remove one module'],
  ]
  for (const [verb, method, about] of verbs) {
    const leaf = add(verb, `${about} of a ${noun}`, async ({ call, options, path, args: [id, name = ''] }) => {
      const at = `${path}/${checkedId(id)}/${moduleNamed(name, modules)}`
      const body = method === 'PUT' ? await readData(options.data, terminal) : undefined
      const answer = await call(method, at, body)
      if (answer) printAnswer(terminal, answer, options.json === true)
    })
    leaf.argument('<id>', `id of the ${noun}`).argument('<module>', `one of ${modules.join(', ')}`)
    if (method === 'PUT') addBodyFlags(leaf, [])
  }
}

function addBodyFlags(leaf: Command, flags: readonly FieldFlag[]): void {
  for (const { option } of flags) leaf.addOption(option)
  leaf.option('--data <json>', 'the body as JSON, @file, or - for standard input; flags win over it')
}

function printAnswer(terminal: Terminal, answer: ApiAnswer | null, asJson: boolean): void {
  if (answer === null) return
  if (asJson) printJson(terminal, answer)
  else printFields(terminal, answer)
}

function moduleNamed(word: string, modules: readonly string[]): string {
  const name = word.replaceAll('-', '_')
  if (modules.includes(name)) return name
  const meant = nearest(name, modules)
  throw misuse(
    `there is no module \`${word}\` here; ${meant ? `did you mean \`${meant}\`?` : `the modules are ${modules.join(', ')}`}`,
  )
}

/** `replay` of `/{id}/replay`. */
function lastWord(at: string): string {
  return at.slice(at.lastIndexOf('/') + 1)
}

function pathOf(path: string, options: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) =>
    checkedId(text(options[new Option(`--${withDashes(name)}`).attributeName()])),
  )
}

/** An id becomes part of a path, so anything that could lead elsewhere (`..`, `a/b`, `x?y`) is refused. */
function checkedId(id: string | undefined): string {
  if (id === undefined || !/^\w+$/.test(id)) throw misuse('an id has only letters, digits and `_`, such as ak_…')
  return id
}

function atLeastOne(given: string): number {
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new InvalidArgumentError('It must be a whole number, 1 or more.')
  return Number(given)
}

function example(leaf: Command): string {
  const args = leaf.registeredArguments.map((argument) => (argument.name() === 'id' ? '<id>' : `<${argument.name()}>`))
  const needed = leaf.options.filter((option) => option.mandatory).map((option) => `${option.long} <id>`)
  return [...args, ...needed].join(' ')
}

function lowerFirst(sentence: string): string {
  return sentence.slice(0, 1).toLowerCase() + sentence.slice(1)
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
