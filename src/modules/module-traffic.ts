/** What a module does to traffic: only data planes load it. */
import type { Phases } from './phases.ts'
import type { ModuleTools } from './tools.ts'

/** `Settings` is what the form of the module returns from `resolve`. The methods must not use `this`. */
export interface ModuleTraffic<Settings = unknown> {
  /** That of its form. */
  readonly name: string
  /** Runs once per change, never per connection; throws when the settings cannot be served. */
  compile(this: void, settings: Settings, tools: ModuleTools): Phases
  /** Like `compile`, for costly settings: in steps, so that other work can run between them. */
  steps?(this: void, settings: Settings, tools: ModuleTools): Generator<void, Phases, void>
  /**
   * Starts to load the libraries that such settings need, when an edge first has them: a visitor who comes later must not
   * wait for that.
   */
  load?(this: void, settings: Settings): void
  /** The expressions that `compile` will ask its tools for, so that they can be parsed beforehand. */
  expressions?(this: void, settings: Settings): readonly string[]
  /** The lists of patterns that `compile` will ask its tools for, so that costly ones can be compiled beforehand. */
  patterns?(this: void, settings: Settings): readonly (readonly string[])[]
}
