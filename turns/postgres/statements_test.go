package postgres

