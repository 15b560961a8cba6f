"""Git repositories: running git, a bare one of our own, commits fetched into it, trees and files of them."""
