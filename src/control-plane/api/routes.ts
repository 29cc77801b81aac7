/** The route table: every operation of the API, derived from the registries. */
import type { TObject, TProperties, TSchema } from 'typebox'
import { closedObject, nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { plural } from '../../lib/text/plural.ts'
import type { AgentCommand } from '../../model/presence.ts'
import { modulesAt } from '../../modules/forms.ts'
import type { Module } from '../../modules/module.ts'
import { formsOf, type ModuleForm } from '../../modules/spellings.ts'
import { documented, resources } from '../resources/index.ts'
import type { HandlerName, Resource, Verb } from '../resources/resource.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What a route does. */
export type RouteAction = Verb | 'clear' | 'put_module' | 'get_module' | 'delete_module' | 'command' | HandlerName

export interface ApiRoute {
  readonly method: Method
  /** Parameters are written as `{id}`. */
  readonly path: string
  /** Unique name: `create_api_key`. */
  readonly operation: string
  readonly summary: string
  readonly action: RouteAction
  /** The handler in `operations.ts`; named like the action by default. */
  readonly handler?: HandlerName | undefined
  readonly resource: Resource
  readonly module?: Module
  /** The spelling in which the route reads and writes the module. */
  readonly form?: ModuleForm
  readonly command?: AgentCommand
  /** The field that is cleared. */
  readonly field?: string
  /** Query parameters besides those for paging. */
  readonly filters?: TProperties | undefined
  /** Which server-sent events come, where the answer is a stream of them. */
  readonly events?: string
  readonly status: 200 | 201 | 204
  /** Schema of the body; null when none is taken. */
  readonly body: TObject | null
  /** Schema of the answer; null when it has no body. */
  readonly response: TSchema | null
}

/** Every route of the API, in the order of the document. The server, the document and the tests all use this table. */
export function routeTable(): readonly ApiRoute[] {
  return [
    ...resources.flatMap((resource) => [
      ...resourceRoutes(resource),
      ...routesOfOtherName(resource),
      ...clearRoutes(resource),
      ...moduleRoutes(resource),
      ...actionRoutes(resource),
    ]),
    ...documented.flatMap(ownRoutes),
  ]
}

/** Whether the answer says if what was written is in force (D100). */
export function isWrite({ action }: ApiRoute): boolean {
  return writes.has(action)
}

const writes: ReadonlySet<RouteAction> = new Set([
  ...(['create', 'update', 'delete', 'clear', 'put_module', 'delete_module'] as const),
])

/** The methods of the routes that match `url`, in the order of the table. The path of `url` must be decodable. */
export function methodsAt(routes: readonly ApiRoute[], url: string): readonly Method[] {
  const path = decodeURI(url.split('?')[0] ?? '')
    .replace(/\/{2,}/g, '/')
    .replace(/(?<=.)\/$/, '')
  return [...new Set(routes.filter((route) => fits(route.path, path)).map(({ method }) => method))]
}

function fits(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  return wanted.length === given.length && wanted.every((part, i) => part.startsWith('{') || part === given[i])
}

function ownRoutes(resource: Resource): ApiRoute[] {
  return (resource.routes ?? []).map(({ at, status = 200, body = null, response = resource.view, ...route }) => ({
    ...route,
    action: route.operation,
    path: `${resource.path}${at}`,
    resource,
    status,
    body,
    response: route.events === undefined ? response : null,
  }))
}

function routesOfOtherName(resource: Resource): ApiRoute[] {
  if (!resource.otherName) return []
  const { name, ...other } = resource.otherName
  return resourceRoutes({ ...resource, ...other }, name)
}

function resourceRoutes(resource: Resource, name = resource.kind): ApiRoute[] {
  const { noun, path, verbs, handlers, create, update, view, filters } = resource
  const answered = { status: 200, body: null, response: view } as const
  const all: Record<Verb, Pick<ApiRoute, 'method' | 'status' | 'body' | 'response' | 'filters'>> = {
    create: { ...answered, method: 'POST', status: 201, body: create },
    list: { ...answered, method: 'GET', response: listView(resource), filters },
    get: { ...answered, method: 'GET' },
    update: { ...answered, method: 'PATCH', body: update },
    delete: { ...unanswered, method: 'DELETE' },
  }
  return verbs.map((verb) => ({
    ...all[verb],
    path: verb === 'create' || verb === 'list' ? path : `${path}/{id}`,
    operation: `${verb}_${verb === 'list' ? plural(name) : name}`,
    summary: `${sentence(verb)} ${verb === 'list' ? plural(noun) : article(noun)}`,
    action: verb,
    handler: handlers?.[verb],
    resource,
  }))
}

function clearRoutes(resource: Resource): ApiRoute[] {
  return resource.clears.map(({ name, field }) => ({
    method: 'DELETE',
    path: `${resource.path}/{id}/${name}`,
    operation: `delete_${resource.kind}_${name}`,
    summary: `Clear ${name} of ${article(resource.noun)}`,
    action: 'clear',
    resource,
    field,
    ...unanswered,
  }))
}

function moduleRoutes(resource: Resource): ApiRoute[] {
  const { place } = resource
  if (!place) return []
  return modulesAt(place).flatMap((module) =>
    formsOf(module, place).flatMap((form) => formRoutes({ resource, module, form })),
  )
}

function formRoutes(of: Required<Pick<ApiRoute, 'resource' | 'module' | 'form'>>): ApiRoute[] {
  const { kind, noun, path } = of.resource
  const { name, body, view } = of.form
  const answered = { status: 200, response: view } as const
  const all = {
    put: { ...answered, method: 'PUT', body, summary: 'Replace' },
    get: { ...answered, method: 'GET', body: null, summary: 'Get' },
    delete: { ...unanswered, method: 'DELETE', summary: 'Delete' },
  } as const
  return (['put', 'get', 'delete'] as const).map((verb) => ({
    ...of,
    ...all[verb],
    path: `${path}/{id}/${name}`,
    operation: `${verb}_${kind}_${name}`,
    summary: `${all[verb].summary} ${name} of ${article(noun)}`,
    action: `${verb}_module`,
  }))
}

/** Commands to agents, and further actions, which are both a POST to one of the resources. */
function actionRoutes(resource: Resource): ApiRoute[] {
  const { kind, noun, path, commands, actions = [] } = resource
  const summaryOf = (command: AgentCommand) => `Tell the agent of ${article(noun)} to ${command}`
  const all = [
    ...commands.map((command) => ({ name: command, summary: summaryOf(command), action: 'command', command }) as const),
    ...actions.map(({ name, about }) => ({ name, summary: about, action: name })),
  ]
  return all.map(({ name, ...route }) => ({
    ...route,
    method: 'POST',
    path: `${path}/{id}/${name}`,
    operation: `${name}_${kind}`,
    resource,
    // D43: any body of a command is accepted and ignored.
    ...unanswered,
  }))
}

/** What a route without an answer has. */
const unanswered = { status: 204, body: null, response: null } as const

function listView({ listKey, noun, view }: Resource): TObject {
  return closedObject({
    [listKey ?? '']: Type.Array(view, { description: `The ${plural(noun)}, newest first.` }),
    uri: Type.String({ description: 'Address of this list.' }),
    next_page_uri: nullable(Type.String({ description: 'Address of the next page; null at the end.' })),
  })
}

/** `word` as a sentence begins. */
export function sentence(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`
}

function article(noun: string): string {
  return /^([aeio]|API|SSH|HTTP)/i.test(noun) ? `an ${noun}` : `a ${noun}`
}
