/** The port through which the data planes of one node talk to each other, so that they count as one server. */

export interface Neighbours {
  readonly self: string
  /** The other planes that are reachable now. */
  others(): readonly string[]
  /** Calls `heard` whenever `others()` changes. */
  whenChanged(heard: () => void): void
  /** Rejects when the plane is gone. */
  ask(planeId: string, name: string, argument: unknown): Promise<unknown>
  /** Messages to one plane arrive in the order in which they were sent; messages to a plane that is gone are lost. */
  tell(planeId: string, name: string, argument: unknown): void
  /** Handles what others ask or tell under this name. */
  serve(name: string, handler: (argument: unknown, from: string) => unknown): void
}

/** Tells every other plane. */
export function tellAll(neighbours: Neighbours, name: string, argument: unknown): void {
  for (const plane of neighbours.others()) neighbours.tell(plane, name, argument)
}

/** Calls `changed` with the planes that came and those that left, whenever any did. */
export function whenMoved(
  neighbours: Neighbours,
  changed: (came: readonly string[], left: readonly string[]) => void,
): void {
  let known: readonly string[] = []
  const look = (): void => {
    const before = known
    known = [...neighbours.others()]
    const came = known.filter((plane) => !before.includes(plane))
    const left = before.filter((plane) => !known.includes(plane))
    if (came.length + left.length > 0) changed(came, left)
  }
  neighbours.whenChanged(look)
  look()
}
