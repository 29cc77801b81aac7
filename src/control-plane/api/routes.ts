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
      ...commands(resource),
      ...actions(resource),
    ]),
    ...documented.flatMap(ownRoutes),
  ]
}

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
  const one = `${path}/{id}`
  const all: Record<Verb, Omit<ApiRoute, 'action' | 'resource'>> = {
    create: {
      method: 'POST',
      path,
      operation: `create_${name}`,
      summary: `Create ${article(noun)}`,
      status: 201,
      body: create,
      response: view,
    },
    list: {
      method: 'GET',
      path,
      operation: `list_${plural(name)}`,
      summary: `List ${plural(noun)}`,
      status: 200,
      body: null,
      response: listView(resource),
      filters,
    },
    get: {
      method: 'GET',
      path: one,
      operation: `get_${name}`,
      summary: `Get ${article(noun)}`,
      status: 200,
      body: null,
      response: view,
    },
    update: {
      method: 'PATCH',
      path: one,
      operation: `update_${name}`,
      summary: `Update ${article(noun)}`,
      status: 200,
      body: update,
      response: view,
    },
    delete: {
      method: 'DELETE',
      path: one,
      operation: `delete_${name}`,
      summary: `Delete ${article(noun)}`,
      ...unanswered,
    },
  }
  return verbs.map((verb) => ({ ...all[verb], action: verb, handler: handlers?.[verb], resource }))
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
  const base = { ...of, path: `${path}/{id}/${name}` }
  const what = `${name} of ${article(noun)}`
  return [
    {
      ...base,
      method: 'PUT',
      action: 'put_module',
      operation: `put_${kind}_${name}`,
      summary: `Replace ${what}`,
      status: 200,
      body,
      response: view,
    },
    {
      ...base,
      method: 'GET',
      action: 'get_module',
      operation: `get_${kind}_${name}`,
      summary: `Get ${what}`,
      status: 200,
      body: null,
      response: view,
    },
    {
      ...base,
      method: 'DELETE',
      action: 'delete_module',
      operation: `delete_${kind}_${name}`,
      summary: `Delete ${what}`,
      ...unanswered,
    },
  ]
}

function commands(resource: Resource): ApiRoute[] {
  return resource.commands.map((command) => ({
    method: 'POST',
    path: `${resource.path}/{id}/${command}`,
    operation: `${command}_${resource.kind}`,
    summary: `Tell the agent of ${article(resource.noun)} to ${command}`,
    action: 'command',
    resource,
    command,
    // D43: any body is accepted and ignored.
    ...unanswered,
  }))
}

function actions(resource: Resource): ApiRoute[] {
  return (resource.actions ?? []).map(({ name, about }) => ({
    method: 'POST',
    path: `${resource.path}/{id}/${name}`,
    operation: `${name}_${resource.kind}`,
    summary: about,
    action: name,
    resource,
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

function article(noun: string): string {
  return /^([aeio]|API|SSH|HTTP)/i.test(noun) ? `an ${noun}` : `a ${noun}`
}
