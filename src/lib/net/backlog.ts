/** How many connections the system may queue for one listener; its own limit may be lower. */
export const BACKLOG = 4096
